// Draws ranks × time, and tells what is chosen in it.

function describe(call) {
  const end = call.end === null ?
    (call.progress === kWaits ? ', and waits since ' + lengthText(Math.max(0, page.now - call.enter)) : '') :
    ', took ' + lengthText(call.end - call.enter);
  return 'rank ' + call.rank + ': call ' + call.number + ' of ' + commName(call) + ', ' + callText(call) + ', ' +
    kProgress[call.progress] + '; entered at ' + timeText(call.enter) + end +
    (whereText(call) ? '; ' + whereText(call) : '');
}

function axis(scale, bottom) {
  const marks = [];
  let last = -Infinity;
  scale.times.forEach((time, i) => {
    const x = scale.places[i];
    if (x - last < 90 || (x > kWidth - 70 && time !== page.now)) return;
    last = x;
    const isEnd = time === page.now;
    marks.push(svg('line', {class: 'axis', x1: x, x2: x, y1: kTop - 4, y2: bottom}),
      svg('text', {class: 'dim', x: isEnd ? x : x + 3, y: kTop - 8, 'text-anchor': isEnd ? 'end' : null},
        timeText(time)));
  });
  for (const cut of scale.cuts) {
    marks.push(
      svg('rect', {class: 'cut', x: cut.from, width: Math.max(0, cut.to - cut.from), y: kTop, height: bottom - kTop},
        svg('title', null, lengthText(cut.gap) + ' in which nothing began or ended, shortened')));
    if (cut.to - cut.from > 44) {
      marks.push(svg('text', {class: 'dim', x: (cut.from + cut.to) / 2, y: bottom + 13, 'text-anchor': 'middle'},
        '⋯ ' + lengthText(cut.gap)));
    }
  }
  return marks;
}

// Bars of one lane; calls that overlap share its height.
function bars(lane, y, scale, add) {
  const drawn = [], rows = [];
  for (const call of lane.calls) {
    const from = scale.at(call.enter);
    const ended = ranks.get(call.rank).ended;
    const until = call.end !== null ? call.end : ended !== null ? ended : page.now;
    const to = Math.max(from + 3, scale.at(until) - 1);
    let row = rows.findIndex(end => end <= from + 0.5);
    if (row < 0) row = rows.length < 3 ? rows.push(0) - 1 : 2;
    rows[row] = to;
    drawn.push({call, from, to, row});
  }
  const height = (kLaneHeight - 8) / Math.max(1, rows.length);
  return drawn.map(({call, from, to, row}) => {
    const top = y + 4 + row * height;
    const bar = svg('rect', {
      class: classes('bar', call.progress === kWaits && 'waits', isOdd(call) && 'is-odd'),
      x: from,
      width: to - from,
      y: top,
      height: height - 1,
      rx: 2,
      fill: colourOf(call.op),
    },
      svg('title', null, describe(call)));
    add(call, bar);
    const label =
      height > 9 ? [callText(call), call.op, shortOp(call.op)].find(said => 8 + 7 * said.length < to - from) : null;
    return [bar, label && svg('text', {class: 'on-bar', x: from + 4, y: top + height / 2 + 4}, label)];
  });
}

// Where a rank should have made the call that the others are in.
function missing(lane, y, scale) {
  const rank = ranks.get(lane.rank);
  if (parting === null || !lane.odd || rank.calls.some(atParting)) return null;
  const waited = [...ranks.values()].flatMap(one => one.calls.filter(atParting));
  if (waited.length === 0) return null;
  const x = scale.at(waited.reduce((first, call) => Math.min(first, call.enter), Infinity));
  return [
    svg('rect', {class: 'missing', x, width: Math.max(60, kWidth - 14 - x), y: y + 6, height: kLaneHeight - 12, rx: 3}),
    svg('text', {class: 'odd', x: x + 8, y: y + kLaneHeight / 2 + 4}, 'no call ' + parting)
  ];
}

function missingText() {
  const without =
    parting === null ? [] : [...suspects].filter(rank => ranks.has(rank) && !ranks.get(rank).calls.some(atParting));
  if (without.length === 0) return '';
  return ranksText(listOf(without)) + (without.length > 1 ? ' have' : ' has') + ' not made call ' + parting + ' of ' +
    page.comms[partingComm].name + '. ';
}

function draw(lanes, before, show) {
  chooseCalls(lanes, before);
  const scale = makeScale(lanes), bottom = kTop + lanes.length * kLaneHeight;
  const cells = lanes.map(() => []);
  const picture = svg('svg', {
    viewBox: `0 0 ${kWidth} ${bottom + 20}`,
    tabindex: 0,
    role: 'img',
    'aria-label': 'Calls of ranks over time; arrow keys go from call to call'
  });
  const backs = lanes.map((lane, i) => svg('rect', {
    class: classes('lane', lane.odd && 'is-suspected'),
    x: 0,
    y: kTop + i * kLaneHeight + 1,
    width: kWidth,
    height: kLaneHeight - 2
  }));
  picture.append(...backs, ...axis(scale, bottom));
  lanes.forEach((lane, i) => {
    const y = kTop + i * kLaneHeight;
    const label = lane.label.length > 25 ? lane.label.slice(0, 24) + '…' : lane.label;
    picture.append(svg('text', {class: lane.odd ? 'odd' : null, x: 6, y: y + (lane.note ? 13 : 19)},
      (lane.odd ? '◆ ' : '') + label, svg('title', null, lane.label)));
    if (lane.note)
      picture.append(svg('text', {class: 'dim', x: 6, y: y + 26}, lane.note + ', drawn: rank ' + lane.rank));
    picture.append(...bars(lane, y, scale, (call, bar) => {
      const at = {call, bar, lane: i, index: cells[i].length};
      bar.addEventListener('click', () => show(at));
      cells[i].push(at);
    }).flat().filter(Boolean), ...(missing(lane, y, scale) || []));
    const ended = ranks.get(lane.rank).ended;
    if (ended !== null) {
      picture.append(svg('text', {class: 'odd', x: Math.min(scale.at(ended), kWidth - 16), y: y + 19}, '✕',
        svg('title', null, 'ended: ' + ranks.get(lane.rank).ending)));
    }
  });
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
