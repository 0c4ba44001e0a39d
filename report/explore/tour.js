// The tour: six steps, each one sentence and one button.

const PERMUTED = { ...DEFAULT_SETTINGS, relabelled: true };

// `settings` are those of the run, `test` is what differs from the test of these settings on ordered tasks, and `at` is
// a section or a figure.
const STORY = [
  {
    text:
      "Pretrain 20 Transformers on 20,000 of Boyan's chains each, the paper's main setting, and watch the mean of " +
      "their weights A emerge.",
    button: "Pretrain",
    settings: DEFAULT_SETTINGS,
    at: "watch",
    anew: true,
  },
  {
    text:
      "Compare A with θᵀᴰ, for which each layer is one update of TD: without what changes no output, A has the same " +
      "two diagonals, and something else.",
    button: "Compare with θᵀᴰ",
    settings: DEFAULT_SETTINGS,
    at: "watch",
  },
  {
    text:
      "Relabel the states of each test task: no state gets another value, but the error is many times larger, because " +
      "A knows the order of Boyan's states.",
    button: "Relabel the test tasks",
    settings: DEFAULT_SETTINGS,
    test: { relabelled: true },
    at: "error",
  },
  {
    text:
      "Permute the labels in pretraining as well: what looked like noise is gone, and A has two numbers in its upper " +
      "half, α and β.",
    button: "Permute in pretraining",
    settings: PERMUTED,
    test: { relabelled: true },
    at: "watch",
  },
  {
    text:
      "Go deeper than in pretraining, with the same layer 300 times: errors grow, because these weights are right at " +
      "one depth only.",
    button: "Use 300 layers",
    settings: PERMUTED,
    test: { relabelled: true, depth: 300 },
    at: "test",
  },
  {
    text:
      "Give the weights a prompt, 20 steps of a chain that they have never seen, and compare their estimates with the " +
      "true values.",
    button: "Give it a prompt",
    settings: PERMUTED,
    test: { relabelled: true, format: "grouped" },
    at: "chain",
  },
];

// Run the settings of a step unless they run already, test as it says, offer the next step beside the course of the
// run, and scroll to its place.
function takeStep(i) {
  const { text, settings, test, anew, at } = STORY[i];
  if (anew || !view.number || !sameRun(settings, view.settings)) start(settings);
  leaveTour();
  find("story").children[i].setAttribute("aria-current", "step");
  const [sentence, next] = find("tour").children;
  const last = i + 1 === STORY.length;
  sentence.textContent = `${i + 1}. ${text}`;
  next.textContent = last ? "End the tour" : `Next: ${STORY[i + 1].button}`;
  next.onclick = () => (last ? leaveTour() : takeStep(i + 1));
  find("tour").hidden = false;
  document.body.style.setProperty("--bar", `${find("run").offsetHeight}px`);
  const { depth, discount } = settings;
  Object.assign(view.test, { relabelled: false, environment: "", format: "steps", depth, discount }, test);
  Object.assign(view, { identifiable: !anew, steps: 20 });
  fillTest();
  askTests();
  redraw(...Object.keys(FIGURES));
  const place = find(at) ?? PLOTS[at].parentElement;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  place.scrollIntoView({ behavior: still ? "auto" : "smooth" });
}

// The sentences of the tour are about its own runs.
function leaveTour() {
  for (const item of find("story").children) item.removeAttribute("aria-current");
  find("tour").hidden = true;
}

STORY.forEach(({ text, button }, i) => {
  const item = document.createElement("li");
  item.innerHTML = `<p></p><button type="button"></button>`;
  item.firstChild.textContent = text;
  item.lastChild.textContent = button;
  item.lastChild.addEventListener("click", () => takeStep(i));
  find("story").append(item);
});
find("story").querySelector("button").className = "primary";

// Show settings of an address; if they are wrong, say what is wrong and run nothing.
function openSettings(settings) {
  fillForm(settings);
  start(settings);
}

if (matchMedia("(max-width: 40rem)").matches) find("choose").querySelector("details").open = false;
fillTest();
redraw("run", ...Object.keys(FIGURES));
openSettings(settingsOf(location.hash.slice(1)));
