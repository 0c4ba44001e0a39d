// The settings of a run in the address of the page, so that a link shows the same run.

const IN_ADDRESS = ["environment", "relabelled", "target", ...Object.keys(LIMITS)];

// The part of the address after #.
function addressOf(settings) {
  return new URLSearchParams(IN_ADDRESS.map((name) => [name, String(settings[name])])).toString();
}

// Settings of an address; parts that it lacks have their defaults.  Wrong values are left to checkSettings.
function settingsOf(address) {
  const settings = { ...DEFAULT_SETTINGS };
  const given = new URLSearchParams(address);
  for (const name of IN_ADDRESS) {
    if (!given.has(name)) continue;
    const text = given.get(name);
    const kind = typeof DEFAULT_SETTINGS[name];
    settings[name] = kind === "number" ? numberOf(text) : kind === "boolean" ? text === "true" : text;
  }
  return settings;
}

// The number that a text stands for; NaN for an empty text.
function numberOf(text) {
  return text.trim() === "" ? NaN : Number(text);
}
