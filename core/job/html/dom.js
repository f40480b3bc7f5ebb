'use strict';
// Elements are made here alone.  What comes from the job is text to them, never markup.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else
      element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === '') continue;
    element.append(child);
  }
  return element;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const classes = (...names) => names.filter(Boolean).join(' ') || null;
const badge = (text, kind) => el('span', {class: 'badge ' + (kind || 'plain')}, text);
const code = text => el('code', null, text);

// `code` in sentences; what is longer than a few lines is folded away behind its beginning.
function prose(sentence) {
  const kLongest = 480;
  if (sentence.length > kLongest) {
    return [sentence.slice(0, kLongest - 40) + '… ', el('details', null, el('summary', null, 'all of it'), sentence)];
  }
  return sentence.split('`').map((part, i) => (i % 2 ? code(part) : part));
}

const shortened = (sentence, most) => (sentence.length > most ? sentence.slice(0, most - 1) + '…' : sentence);

// The first ones, and the others folded away.
function folded(items, most, drawList) {
  if (items.length <= most) return drawList(items);
  const rest = el('details', null, el('summary', null, (items.length - most) + ' more'), drawList(items.slice(most)));
  return [drawList(items.slice(0, most)), rest].flat();
}

function section(id, title, ...children) {
  return el('section', {id, 'aria-labelledby': id + '-title'}, el('h2', {id: id + '-title'}, title), ...children);
}

function choice(label, options, chosen, change) {
  const select = el('select', {onchange: () => change(select.value)},
    options.map(([value, text]) => el('option', {value, selected: String(value) === String(chosen)}, text)));
  return el('label', null, label + ' ', select);
}

function table(columns, rows, attributes) {
  return el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': attributes && attributes.label},
    el('table', {class: attributes && attributes.class},
      el('thead', null,
        el('tr', null,
          columns.map(
            column => el('th', {scope: 'col', class: column.number ? 'number' : null}, column.title || column)))),
      el('tbody', null, rows)));
}
