// The page shows the name of the data set, or asks for the token.

const main = document.getElementById("main");

function add(tag, text, properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  element.textContent = text;
  main.append(element);
  return element;
}

// The form navigates by script, because the policy of the page forbids to submit forms.
function askForToken() {
  add("p", "This page needs the token of its server. Open the link that the command printed, or paste the link or the token here.");
  const label = add("label", "Token ");
  const input = document.createElement("input");
  input.autocomplete = "off";
  label.append(input);
  const send = () => {
    const token = input.value.trim().replace(/^.*[?&]t=/, "").replace(/[&#].*$/, "");
    if (token) location.assign("/?t=" + encodeURIComponent(token) + location.hash);
  };
  add("button", "Open", { type: "button" }).addEventListener("click", send);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") send();
  });
}

const response = await fetch("/api/dataset");
if (response.status === 403) {
  askForToken();
} else {
  const dataset = await response.json();
  add("h1", dataset.name ?? dataset.error);
}
