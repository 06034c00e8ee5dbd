// Makes elements. Text always becomes a text node, so no name or value can ever become markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element: h("a", {href: "/", onclick: f}, "text", [more]). */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** Make an SVG element. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  add(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    element.addEventListener(name.slice(2), value);
  } else if (name === "style") {
    // By the object model: a style attribute is inline style, which the page's policy forbids.
    for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
  } else if (name === "value" || name === "checked" || name === "indeterminate") {
    element[name] = value;
  } else if (name === "class") {
    element.setAttribute("class", Array.isArray(value) ? value.filter(Boolean).join(" ") : value);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Append children; lists are flattened, nothing is left out but null, undefined and false. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Put other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

let last = 0;

/** An id that no other element has. */
export function newId(word) {
  last += 1;
  return `${word}-${last}`;
}
