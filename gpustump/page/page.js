// The page: the tabs, and the model that they show.

function start() {
  const model = new Model(JSON.parse(document.getElementById("model").textContent));
  const main = document.querySelector("main");
  const nav = document.querySelector("nav");
  const refresh = () => {
    for (const tab of tabs) tab.isStale = true;
    show(current);
    document.body.classList.toggle("is-edited", model.edits.length > 0);
  };
  const open = (term) => {
    show(tabs[1]);
    tabs[1].made.show(term);
  };
  const tabs = [
    { name: "Overview", make: () => overviewTab(model, open) },
    { name: "Shapes", make: () => shapesTab(model) },
    { name: "What if", make: () => whatIfTab(model) },
    { name: "Edit", make: () => editTab(model, refresh) },
  ];
  let current = null;

  // A tab is made when it is first shown, and brought up to date after edits.
  function show(tab) {
    current = tab;
    for (const own of tabs) {
      own.button.setAttribute("aria-selected", own === tab);
      own.button.tabIndex = own === tab ? 0 : -1;
      own.panel.hidden = own !== tab;
    }
    if (!tab.made) {
      tab.made = tab.make();
      tab.panel.append(tab.made.element);
    } else if (tab.isStale) tab.made.refresh();
    tab.isStale = false;
  }

  nav.setAttribute("role", "tablist");
  tabs.forEach((tab, k) => {
    const move = (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = tabs[(k + by + tabs.length) % tabs.length];
      show(next);
      next.button.focus();
    };
    tab.panel = html("div", { role: "tabpanel", id: `panel-${k}`, "aria-labelledby": `tab-${k}`, hidden: true });
    tab.button = html("button", { role: "tab", id: `tab-${k}`, "aria-controls": `panel-${k}`, onclick: () => show(tab), onkeydown: move }, tab.name);
    nav.append(tab.button);
    main.append(tab.panel);
  });
  show(tabs[0]);
  globalThis.gpustump = model; // for tests, and for people who open the console
}

start();
