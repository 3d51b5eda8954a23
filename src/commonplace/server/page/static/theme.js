// Runs before anything is drawn, so that the page does not flash in the other theme.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
