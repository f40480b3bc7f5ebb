// Python stacks of all ranks, merged from the outermost frame; frames that the same ranks share are one block.

const isLibrary = frame => /(site-packages|dist-packages|\/lib\/python|^<|torch\/|deepspeed\/)/.test(frame);

// Runs of frames of libraries are folded away; the innermost frame always stays.
function frameLines(lines) {
  const kFolded = 3, shown = [];
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length - 1 && isLibrary(lines[end])) ++end;
    const folded = lines.slice(i, end).map(line => el('code', {class: 'frame library'}, line));
    if (folded.length >= kFolded) {
      shown.push(el('details', null, el('summary', {class: 'dim'}, folded.length + ' frames of libraries'), folded));
    } else {
      shown.push(...folded);
    }
    shown.push(el('code', {class: classes('frame', isLibrary(lines[end]) && 'library')}, lines[end]));
    i = end + 1;
  }
  return shown;
}

function branch(node) {
  const lines = [];
  let at = node;
  for (;;) {
    lines.push(text(at[0]));
    if (at[4].length !== 1 || at[2] || at[3] || at[4][0][1] !== at[1]) break;
    at = at[4][0];
  }
  const odd = ranksIn(at[1]).every(rank => suspects.has(rank));
  const ends = [];
  if (at[2])
    ends.push(el('span', {class: 'badge plain'}, ranksText(at[2]) + (isMany(at[2]) ? ' are here' : ' is here')));
  if (at[3])
    ends.push(el('span', {class: 'badge plain'},
      ranksText(at[3]) + (isMany(at[3]) ? ': in their newest calls' : ': in its newest call')));
  return el('li', {class: odd ? 'is-suspected' : null},
    el('span', {class: classes('ranks', odd && 'suspected')}, ranksText(at[1])),
    frameLines(lines), ends,
    at[4].length ? el('ul', null, at[4].map(branch)) : null);
}

function drawStacks() {
  const {main, others, is_whole: isWhole} = page.stacks;
  if (main.length + others.length === 0) return null;
  return section('stacks', 'Python stacks of all ranks, merged',
    el('p', {class: 'dim'}, 'Outermost first. A rank whose stack was not read is shown where it made its newest call.'),
    el('ul', {class: 'tree'}, main.map(branch)),
    others.length ? [el('h3', null, 'Other threads'), el('ul', {class: 'tree'}, others.map(branch))] : null,
    isWhole ? null : el('p', {class: 'dim'}, 'More branches are not shown.'));
}
