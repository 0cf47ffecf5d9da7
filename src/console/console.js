// Refreshes the overview while it is idle, and requests a confirmation before a form acts. Every page works without it.
"use strict";

document.addEventListener("submit", (event) => {
  const { confirm: question } = event.target.dataset;
  if (question && !window.confirm(question)) event.preventDefault();
});

const KEY = "paybridge-paused";
let fresh = document.getElementById("fresh");
if (fresh) {
  let timer;
  const button = document.createElement("button");
  let status = document.querySelector("footer p");
  const paused = () => sessionStorage.getItem(KEY) !== null;

  const show = () => {
    button.textContent = paused() ? "Refresh by itself" : "Stop refreshing";
    clearInterval(timer);
    if (!paused()) timer = setInterval(refresh, fresh.dataset.refresh * 1000);
  };

  const busy = () => document.hidden || fresh.contains(document.activeElement) || !getSelection().isCollapsed;

  async function refresh() {
    if (busy()) return;
    try {
      const reply = await fetch(location.href, { redirect: "manual", cache: "no-store", headers: { "X-Paybridge-Refresh": "1" } });
      // Signed out, or an error: the page as a whole shows it.
      if (!reply.ok) return location.reload();
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const newer = page.getElementById("fresh");
      if (!newer) return location.reload();
      if (busy()) return;
      const [from, to] = [page, document].map((each) => each.querySelector(".banners"));
      if (to) to.remove();
      if (from) document.querySelector(".page").prepend(from);
      fresh.replaceWith(newer);
      fresh = newer;
      const made = page.querySelector("footer p");
      status.replaceWith(made);
      status = made;
    } catch {
      // The process restarts, or the network is away: the next try comes by itself, and the time below shows the age.
    }
  }

  button.type = "button";
  button.className = "refresh";
  button.addEventListener("click", () => {
    if (paused()) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, "yes");
    show();
  });
  document.querySelector("h1").after(button);
  show();
}
