// Python stacks of all ranks, merged from the outermost frame; frames that the same ranks share are one block.

const isLibrary = node => node[5];

// Runs of frames that are not the user's are folded away; the innermost frame always stays.
function frameLines(nodes) {
  const kFolded = 3, shown = [];
  for (let i = 0; i < nodes.length;) {
    let end = i;
    while (end < nodes.length - 1 && isLibrary(nodes[end])) ++end;
    const folded = nodes.slice(i, end).map(node => el('code', {class: 'frame library'}, text(node[0])));
    if (folded.length >= kFolded) {
      shown.push(el('details', null, el('summary', {class: 'dim'}, folded.length + ' frames of libraries'), folded));
    } else {
      shown.push(...folded);
    }
    shown.push(el('code', {class: classes('frame', isLibrary(nodes[end]) && 'library')}, text(nodes[end][0])));
    i = end + 1;
  }
  return shown;
}

function branch(node) {
  const nodes = [];
  let at = node;
  for (;;) {
    nodes.push(at);
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
    frameLines(nodes), ends,
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
