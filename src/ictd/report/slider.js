// The slider of slider.py: show the snapshot of the slider's position, of the run that the menu names.
(() => {
  const root = document.currentScript.parentElement;
  const runs = JSON.parse(root.querySelector("script").textContent);
  const [map, ...curves] = root.querySelectorAll("svg");
  const menu = root.querySelector("select");
  const slider = root.querySelector("input");
  const tasksSeen = root.querySelector("output");
  const values = root.querySelectorAll(".value");
  const [negative, positive] = root.dataset.colours.split(" ");
  let run;

  const showSnapshot = () => {
    const k = +slider.value;
    run.A[k].forEach((entry, i) => {
      const square = map.children[i];
      square.setAttribute("fill", entry < 0 ? negative : positive);
      square.setAttribute("fill-opacity", Math.abs(entry) / 100);
    });
    curves.forEach((svg, i) => {
      const [x, y] = run.curves[i].points[k];
      svg.querySelector("circle").setAttribute("cx", x);
      svg.querySelector("circle").setAttribute("cy", y);
      values[i].textContent = run.curves[i].values[k];
    });
    tasksSeen.textContent = run.tasks[k].toLocaleString("en");
  };

  const showRun = () => {
    run = runs[menu.value];
    const width = Math.sqrt(run.A[0].length);
    map.setAttribute("viewBox", `0 0 ${width} ${width}`);
    map.innerHTML = run.A[0].map((_, i) =>
      `<rect x="${i % width}" y="${Math.floor(i / width)}" width="1" height="1"/>`).join("");
    curves.forEach((svg, i) => {
      svg.querySelector("g").innerHTML = run.curves[i].axes;
      svg.querySelector("polyline").setAttribute("points", run.curves[i].points.join(" "));
    });
    slider.max = run.tasks.length - 1;
    showSnapshot();
  };

  slider.addEventListener("input", showSnapshot);
  menu.addEventListener("change", showRun);
  root.querySelector(".controls").hidden = false;
  showRun();
})();
