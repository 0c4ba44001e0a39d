// The lesson: seven steps in three sections, each with a prediction, something to try, and a folded answer.

const MAIN = { settings: DEFAULT_SETTINGS };
const PERMUTED = { settings: { ...DEFAULT_SETTINGS, relabelled: true }, test: { relabelled: true } };
const FEW = [1, 4, 16, 64, 256, 0].map((different) => ({ ...DEFAULT_SETTINGS, different }));

// A try has the settings of its run, or of its runs, what differs from a test of these settings on tasks in their
// order, what else of `view` it sets, and the figure or element that it is about.  What a step `covers` would give its
// answer away, in this step or in an earlier one.
const STEPS = [
  {
    title: "A layer is an update",
    minutes: 4,
    section: "mechanism",
    predict:
      "With the paper's weights θᵀᴰ, a layer is one update of TD. Let the only reward be 1, in the last state. " +
      "Which estimates of θᵀᴰ differ from 0 after one layer, and which after two?",
    tries: [
      {
        ...MAIN,
        button: "Reward only the last state",
        view: { rewards: "last", layer: 0, steps: 0 },
        show: "prompt",
      },
    ],
    explain:
      "Step through the layers. What does the last row of θᵀᴰ's prompt hold? After 20,000 tasks, what do the " +
      "pretrained weights do differently?",
    answer:
      "After one layer the last state, after two also the states that lead to it: w₁ = r, w₂ = r + γPr, and so on. " +
      "The last row of θᵀᴰ's context holds the TD errors r + γPw − w of the states; attention finds the column of a " +
      "query's state, and adds its TD error to the estimate. Pretrained weights take smaller steps of this kind, " +
      "and they also move all states together.",
  },
  {
    title: "Read the weights",
    minutes: 4,
    section: "emergence",
    covers: ["A", "shares", "sizes", "numbers"],
    predict:
      "A starts random. In θᵀᴰ it is −I beside I. Which entries of A will pretraining on random tasks make large?",
    tries: [{ ...MAIN, button: "Show what matters in A", view: { identifiable: true }, show: "A" }],
    explain:
      "Drag the slider of the tasks. A layer adds (1/n) Σⱼ yⱼ xⱼ'Ax to the last entry y of a column [x; y]; the sum " +
      "is over the context, and x is [state; γ next state], or [state; 0] for a query. With A = [−K, K; 0, 0], " +
      "K = n(αI + βJ), J all ones: which update is it?",
    answer:
      "The upper half becomes nearly −K beside K. For the query of state s, whose last entry is minus its estimate, " +
      "xⱼ'Ax is −Kⱼₛ. So a layer adds to the estimate of a state α times the TD error of this state, and β times the " +
      "sum of the TD errors of all states. θᵀᴰ has α only. The figure of shares says how much of A it explains, and " +
      "how much more β does. Both still grow.",
  },
  {
    title: "Change the order",
    minutes: 3,
    section: "emergence",
    predict: "Renumber the states of each test task at random. Their values stay the same. Does the error grow?",
    tries: [{ ...MAIN, button: "Renumber the test tasks", test: { relabelled: true }, show: "error" }],
    explain: "What do the weights know about state 3 of a Boyan chain?",
    answer:
      "The error grows many times; that of θᵀᴰ, which treats all states alike, hardly changes. In pretraining, " +
      "state 3 always led to state 4 or 5. A has learned this; after a renumbering it is wrong.",
  },
  {
    title: "Use the symmetry",
    minutes: 4,
    section: "emergence",
    predict:
      "Now renumber the states of each task in pretraining as well. How many different entries can A have, on " +
      "average over runs?",
    tries: [{ ...PERMUTED, button: "Renumber in pretraining", view: { identifiable: true }, show: "A" }],
    explain: "Which entries of A must have the same mean, if all numberings of the states are equally likely?",
    answer:
      "Eight (the curve <i>symmetry</i> reaches 1). A permutation of the states changes neither the law of the " +
      "tasks nor the mean of A. It takes each diagonal entry of an n × n block to any other, and each pair of " +
      "different states to any other pair. So each of the four blocks has two numbers. And two numbers, α and β, " +
      "explain nearly all of A.",
  },
  {
    title: "Count the tasks",
    minutes: 4,
    section: "worth",
    predict: "Each task was new so far. Let pretraining repeat K different tasks. Which K suffices for unseen tasks?",
    tries: [{ runs: FEW, button: "Run K = 1, 4, 16, 64, 256 (about a minute)", show: "runs" }],
    explain: "The table keeps the errors. Why is one task too few, and why do not all have to differ?",
    answer:
      "With one task, weights that fit its values need not use the prompt. The error falls by a large factor from 4 " +
      "to 64 tasks. With 256 it is nearly that of new tasks. K need not exceed the 100 entries of A: each task " +
      "gives n = 5 values.",
  },
  {
    title: "Change the prompt",
    minutes: 3,
    section: "worth",
    covers: ["steps"],
    predict:
      "Try pretrains again as in step 4. In pretraining a prompt had one column for each state. The paper tests " +
      "with a column for each step of a trajectory. Does the error with 100 steps come near that of least squares " +
      "(LSTD)?",
    tries: [
      { ...PERMUTED, button: "A column for each step", show: "steps" },
      {
        ...PERMUTED,
        button: "A column for each visited state",
        test: { relabelled: true, format: "grouped" },
        show: "steps",
      },
    ],
    explain: "What does a state that is visited twice as often have in a prompt of steps?",
    answer:
      "No. A state visited twice as often has twice as many columns, so its step size is twice as large. Grouping " +
      "gives each visited state one column, with means over its steps, as in pretraining, and the error comes near " +
      "that of LSTD.",
  },
  {
    title: "Why not exactly TD?",
    minutes: 3,
    section: "worth",
    covers: ["depths", "ones"],
    predict: "Pretraining had 30 layers. Does the error fall with 60? And that of θᵀᴰ?",
    tries: [
      {
        ...PERMUTED,
        button: "Use 60 layers",
        test: { relabelled: true, depth: 60, format: "grouped" },
        show: "depths",
      },
    ],
    explain: "If every reward is 1, every value is 1/(1 − γ) = 10. How does each estimate change with the layers?",
    answer:
      "No, it grows; that of θᵀᴰ falls. TD is slowest on an error that all states share: θᵀᴰ is at 9.6 after 30 " +
      "layers. The values are mostly such a constant, so the answer to r = 1 counts most. After 20,000 tasks the " +
      "pretrained estimate meets 10 at 30 layers, because the right half of A (section 2) is larger than the left, " +
      "as if γ exceeded 1; with more layers it passes 10. This fixes one combination of the eight numbers, and " +
      "pretraining has not ended.",
  },
];

// Answers, the steps whose answer was opened, and those that were tried, kept where the browser lets a page do so.
const notes = { done: [], tried: [] };
const STORE = "ictd lesson";
try {
  Object.assign(notes, JSON.parse(localStorage.getItem(STORE)));
} catch {}

function keep(saved = notes) {
  try {
    localStorage.setItem(STORE, JSON.stringify(saved));
  } catch {}
  find("lesson").textContent = `Lesson: step ${nextStep() + 1} of ${STEPS.length}`;
  for (const [i, card] of CARDS.entries()) card.classList.toggle("done", notes.done.includes(i));
  const open = CARDS.findIndex((card) => card.open);
  for (const [i, { covers = [] }] of STEPS.entries()) {
    const answered = notes.done.includes(i) || notes.tried.includes(i);
    for (const name of covers) placeOf(name).classList.toggle("covered", open >= 0 && open <= i && !answered);
  }
}

// Add a step to those of a kind, "done" or "tried".
function note(kind, i) {
  if (!notes[kind].includes(i)) notes[kind].push(i);
  keep();
}

// The open step, or else the first one that is not done.
function nextStep() {
  const open = CARDS.findIndex((card) => card.open);
  return open >= 0 ? open : CARDS.findIndex((_, i) => i + 1 === CARDS.length || !notes.done.includes(i));
}

const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const goTo = (element, block = "start") => element.scrollIntoView({ behavior: still ? "auto" : "smooth", block });

function openStep(i) {
  CARDS[i].open = true;
  goTo(CARDS[i]);
}

// Run the settings of a try unless they run already, or those of its runs that are not in the table; test as it says,
// and show what it is about.
function takeStep({ settings, runs, test, view: changes, show }) {
  runAll(runs ? runs.filter((each) => !ran.has(addressOf(each))) : [settings]);
  stop();
  const { depth } = view.settings;
  Object.assign(view.test, { relabelled: false, environment: "", format: "steps", depth }, test);
  Object.assign(view, changes);
  fillForm(view.settings);
  fillTest();
  askTests();
  redraw(...Object.keys(FIGURES));
  goTo(placeOf(show), "nearest");
}

const noteField = (i, name, words) =>
  `<label>${words} <textarea rows="2" data-note="${i} ${name}"></textarea></label>`;

const CARDS = STEPS.map(({ title, minutes, section, predict, tries, explain, answer }, i) => {
  const card = document.createElement("details");
  card.name = "lesson";
  card.className = "card";
  const buttons = tries.map(({ button }) => `<button type="button" class="try">${button}</button>`).join("");
  card.innerHTML =
    `<summary><h3>${i + 1}. ${title}</h3> <span>${minutes} min</span></summary>` +
    `<p><b>Predict.</b> ${predict}</p>${noteField(i, "expected", "I expect")}` +
    `<div class="buttons"><b>Try.</b> ${buttons}</div>` +
    `<p><b>Explain.</b> ${explain}</p>${noteField(i, "because", "Because")}` +
    `<details class="answer"><summary>Answer</summary><p>${answer}</p></details>` +
    (i + 1 < STEPS.length ? `<button type="button" class="next">Next: ${STEPS[i + 1].title}</button>` : "");
  card.querySelectorAll(".try").forEach((button, k) =>
    button.addEventListener("click", () => {
      note("tried", i);
      takeStep(tries[k]);
    }),
  );
  card.querySelector(".next")?.addEventListener("click", () => openStep(i + 1));
  card.querySelector(".answer").addEventListener("toggle", () => note("done", i));
  card.addEventListener("toggle", () => keep());
  find(section).querySelector(".steps").append(card);
  return card;
});

for (const [i, { covers = [] }] of STEPS.entries()) {
  for (const name of covers) {
    const cover = document.createElement("button");
    const textContent = `Step ${i + 1} of the lesson asks about this. Show\u00a0it`;
    Object.assign(cover, { className: "cover", type: "button", textContent });
    cover.addEventListener("click", () => {
      note("tried", i);
      PLOTS[name].focus();
    });
    PLOTS[name]?.after(cover);
  }
}

for (const area of document.querySelectorAll("[data-note]")) {
  area.value = notes[area.dataset.note] ?? "";
  area.addEventListener("input", () => {
    notes[area.dataset.note] = area.value;
    keep();
  });
}

function answersText() {
  const steps = STEPS.map(({ title, predict, explain }, i) => {
    const given = (name) => notes[`${i} ${name}`] || "(no answer)";
    return `${i + 1}. ${title}\n\n${predict}\n> ${given("expected")}\n\n${explain}\n> ${given("because")}\n`;
  });
  const rows = Array.from(find("runs").rows, (row) => Array.from(row.cells, (cell) => cell.textContent).join("\t"));
  return `${document.title}\n\n${steps.join("\n")}\nRuns\n\n${rows.join("\n")}\n`;
}

find("answers").addEventListener("click", () => save(new Blob([answersText()], { type: "text/plain" }), "lesson.txt"));
find("forget").addEventListener("click", () => {
  if (!confirm("Delete all your answers?")) return;
  keep({ done: [] });
  location.reload();
});
find("lesson").addEventListener("click", () => openStep(nextStep()));
keep();

// Show settings of an address; if they are wrong, say what is wrong and run nothing.
function openSettings(settings) {
  fillForm(settings);
  start(settings);
}

if (matchMedia("(min-width: 60rem)").matches) CARDS[nextStep()].open = true;
fillTest();
redraw("run", "numbers", ...Object.keys(FIGURES));
openSettings(settingsOf(location.hash.slice(1)));
