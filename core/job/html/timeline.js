// Draws ranks × time, and tells what is chosen in it.

function describe(call) {
  const waited = lengthText(Math.max(0, lastOf(call.rank) - call.enter));
  let end = '';
  if (call.end !== null) end = ', took ' + lengthText(call.end - call.enter);
  else if (call.progress === kWaits && ranks.get(call.rank).ended === null) end = ', and waits since ' + waited;
  else if (call.progress === kWaits) end = ', waited ' + waited + ' until the rank ended';
  return 'rank ' + call.rank + ': call ' + call.number + ' of ' + commName(call) + ', ' + callText(call) + ', ' +
    kProgress[call.progress] + '; entered at ' + timeText(call.enter) + end +
    (whereText(call) ? '; ' + whereText(call) : '');
}

function axis(scale, bottom) {
  const marks = [];
  let last = -Infinity;
  scale.times.forEach((time, i) => {
    const x = scale.places[i];
    if (time !== page.now && (x - last < 90 || x > kWidth - 150)) return;
    last = x;
    const isEnd = time === page.now;
    marks.push(svg('line', {class: 'axis', x1: x, x2: x, y1: kTop - 4, y2: bottom}),
      svg('text', {class: 'dim', x: isEnd ? x : x + 3, y: kTop - 8, 'text-anchor': isEnd ? 'end' : null},
        timeText(time)));
  });
  let labelled = -Infinity;
  for (const cut of scale.cuts) {
    marks.push(
      svg('rect', {class: 'cut', x: cut.from, width: Math.max(0, cut.to - cut.from), y: kTop, height: bottom - kTop},
        svg('title', null, lengthText(cut.gap) + ' in which nothing began or ended, shortened')));
    const middle = (cut.from + cut.to) / 2;
    if (cut.to - cut.from > 44 && middle - labelled > 70) {
      labelled = middle;
      marks.push(svg('text', {class: 'dim', x: middle, y: bottom + 13, 'text-anchor': 'middle'},
        '⋯ ' + lengthText(cut.gap)));
    }
  }
  return marks;
}

function barOf({call, from, to, row}, lane, add) {
  const y = lane.y + 4 + row * lane.rowHeight, height = lane.rowHeight - 1;
  const bar = svg('rect', {
    class: classes('bar', call.progress === kWaits && 'waits', isOdd(call) && 'is-odd'),
    x: from, width: to - from, y, height, rx: 2, fill: colourOf(call.op),
  }, svg('title', null, describe(call)));
  add(call, bar);
  const label = [callText(call), call.op, shortOp(call.op)].find(said => 8 + 7 * said.length < to - from);
  return [bar, label && svg('text', {class: 'on-bar', x: from + 4, y: y + height / 2 + 4}, label)];
}

// Where a rank should have made the call that the others are in.
function missing(lane, scale) {
  if (parting === null || !lane.odd || ranks.get(lane.rank).calls.some(atParting)) return [];
  const waited = [...ranks.values()].flatMap(one => one.calls.filter(atParting));
  if (waited.length === 0) return [];
  const x = scale.at(waited.reduce((first, call) => Math.min(first, call.enter), Infinity));
  const width = Math.max(60, kWidth - 14 - x);
  return [
    svg('rect', {class: 'missing', x, width, y: lane.y + 6, height: lane.height - 12, rx: 3}),
    svg('text', {class: 'odd', x: x + 8, y: lane.y + lane.height / 2 + 4}, 'no call ' + parting)
  ];
}

function missingText() {
  const without =
    parting === null ? [] : [...suspects].filter(rank => ranks.has(rank) && !ranks.get(rank).calls.some(atParting));
  if (without.length === 0) return '';
  return ranksText(listOf(without)) + (without.length > 1 ? ' have' : ' has') + ' not made call ' + parting + ' of ' +
    page.comms[partingComm].name + '. ';
}

function laneLabel(lane) {
  const label = lane.label.length > 25 ? lane.label.slice(0, 24) + '…' : lane.label;
  return [
    svg('text', {class: lane.odd ? 'odd' : null, x: 6, y: lane.y + (lane.note ? 13 : 19)},
      (lane.odd ? '◆ ' : '') + label, svg('title', null, lane.label)),
    lane.note && svg('text', {class: 'dim', x: 6, y: lane.y + 26}, lane.note + ', drawn: rank ' + lane.rank)
  ];
}

function endingMark(lane, scale) {
  const {ended, ending} = ranks.get(lane.rank);
  if (ended === null) return [];
  return [svg('text', {class: 'odd', x: Math.min(scale.at(ended), kWidth - 16), y: lane.y + lane.height - 7}, '✕',
    svg('title', null, 'ended: ' + ending))];
}

const laneBack = lane => svg('rect', {
  class: classes('lane', lane.odd && 'is-suspected'), x: 0, y: lane.y + 1, width: kWidth, height: lane.height - 2,
});

// The picture, and per lane the calls that can be chosen in it.
function draw(lanes, before, show) {
  chooseCalls(lanes, before);
  const scale = makeScale(lanes), bottom = placeLanes(lanes, scale), cells = lanes.map(() => []);
  const drawLane = (lane, i) => [laneLabel(lane), lane.bars.map(one => barOf(one, lane, (call, bar) => {
    const cell = {call, bar, lane: i, index: cells[i].length};
    bar.addEventListener('click', () => show(cell));
    cells[i].push(cell);
  })), missing(lane, scale), endingMark(lane, scale)];
  const picture = svg('svg', {
    viewBox: `0 0 ${kWidth} ${bottom + 20}`, tabindex: 0, role: 'img',
    'aria-label': 'Calls of ranks over time; arrow keys go from call to call',
  }, lanes.map(laneBack), axis(scale, bottom), lanes.map(drawLane).flat(4).filter(Boolean));
  return {picture, cells};
}

function nearest(cells, from, lane) {
  let best = null;
  for (const cell of cells[lane] || []) {
    if (!best || Math.abs(cell.call.enter - from.call.enter) < Math.abs(best.call.enter - from.call.enter)) best = cell;
  }
  return best;
}

function step(cells, from, key) {
  if (!from) return cells.flat().find(cell => isOdd(cell.call)) || cells.flat()[0];
  if (key === 'ArrowLeft' || key === 'ArrowRight') return cells[from.lane][from.index + (key === 'ArrowLeft' ? -1 : 1)];
  for (let lane = from.lane + (key === 'ArrowUp' ? -1 : 1); cells[lane]; lane += key === 'ArrowUp' ? -1 : 1) {
    const found = nearest(cells, from, lane);
    if (found) return found;
  }
  return null;
}

function drawTimeline() {
  const lanes = makeLanes(), room = el('div'), told = el('p', {class: 'chosen', 'aria-live': 'polite'});
  let selected = null, cells = [];
  const show = cell => {
    if (!cell) return;
    if (selected) selected.bar.classList.remove('is-selected');
    selected = cell;
    cell.bar.classList.add('is-selected');
    told.replaceChildren(describe(cell.call));
  };
  const redraw = before => {
    const drawing = draw(lanes, before, show);
    cells = drawing.cells;
    selected = null;
    const odd = cells.flat().find(cell => isOdd(cell.call));
    told.replaceChildren(
      odd ? 'The odd call: ' + describe(odd.call) : missingText() + 'Choose a call: click it, or use the arrow keys.');
    drawing.picture.addEventListener('keydown', event => {
      if (!event.key.startsWith('Arrow')) return;
      event.preventDefault();
      show(step(cells, selected, event.key));
    });
    room.replaceChildren(drawing.picture);
  };
  redraw(12);
  const used = kColours.filter(one =>
    lanes.some(lane => ranks.get(lane.rank).calls.some(call => kindOf(call.op) === one)));
  return section('timeline', parting !== null ? 'Ranks × time around the parting' : 'Ranks × time at the end',
    el('div', {class: 'controls'},
      choice('calls before:', [[12, '12'], [40, '40'], [150, '150']], 12, value => redraw(Number(value))),
      el('div', {class: 'legend'},
        used.map(([, name, title]) => el('span', null, el('i', {style: 'background: var(--' + name + ')'}), title)),
        el('span', null, el('i', {style: 'outline: 2px solid var(--odd)'}), 'the odd call'),
        el('span', null, el('i', {style: 'background: var(--gather); opacity: 0.55'}), 'waits'))),
    room, told,
    el('p', {class: 'dim'},
      'From entering a call until the GPU was seen to be done with it. Grey stretches are shortened: nothing began or ',
      'ended there.',
      rankClasses.length > lanes.length && page.ranks.length > kLanesByRank ?
        ' ' + (rankClasses.length - lanes.length) + ' more classes are not drawn.' :
        ''));
}
