// Merges new HTML into an element, node by node, so that focus, selection and scroll positions stay.

export function mergeHtml(element, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  mergeChildren(element, template.content);
}

function mergeChildren(target, source) {
  const keyed = new Map();
  for (const child of target.children) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let current = target.firstChild;
  for (const wanted of [...source.childNodes]) {
    const known = wanted.dataset?.key ? keyed.get(wanted.dataset.key) : undefined;
    if (known && known !== current) {
      target.insertBefore(known, current);
      current = known;
    }
    if (current && isMergeable(current, wanted)) {
      mergeNode(current, wanted);
      current = current.nextSibling;
    } else {
      target.insertBefore(wanted, current);
    }
  }
  while (current) {
    const next = current.nextSibling;
    current.remove();
    current = next;
  }
}

function isMergeable(target, source) {
  return target.nodeType === source.nodeType && target.nodeName === source.nodeName
    && target.dataset?.key === source.dataset?.key;
}

function mergeNode(target, source) {
  if (target.nodeType !== Node.ELEMENT_NODE) {
    if (target.nodeValue !== source.nodeValue) target.nodeValue = source.nodeValue;
    return;
  }
  for (const { name, value } of source.attributes) {
    if (target.getAttribute(name) !== value) target.setAttribute(name, value);
  }
  for (const { name } of [...target.attributes]) {
    // What the viewer opened stays open.
    if (!source.hasAttribute(name) && !(name === "open" && target.nodeName === "DETAILS")) target.removeAttribute(name);
  }
  mergeChildren(target, source);
}
