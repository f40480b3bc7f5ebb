// What the ranks are doing at the end, ranks in equal state as one class.

const kClassColours = ['--gather', '--scatter', '--reduce', '--broadcast', '--pointed', '--other'];
const isSuspected = one => [...one.members].some(rank => suspects.has(rank));

// Suspects are red; the others take the colours in turn.
const colourOfClass = [];
function classColour(index) {
  if (colourOfClass.length === 0) {
    let next = 0;
    for (const one of rankClasses) {
      colourOfClass.push('var(' + (isSuspected(one) ? '--odd' : kClassColours[next++ % kClassColours.length]) + ')');
    }
  }
  return colourOfClass[index];
}

// A square for each rank, in the colour of its class.
function rankMap() {
  const kColumns = 64, kCell = 14, classOf = new Map();
  rankClasses.forEach((one, i) => one.members.forEach(rank => classOf.set(rank, i)));
  const squares = [...ranks.keys()].map((rank, i) => svg('rect', {
    x: i % kColumns * kCell, y: Math.floor(i / kColumns) * kCell, width: kCell, height: kCell, rx: 2,
    fill: classColour(classOf.get(rank)),
  }, svg('title', null, 'rank ' + rank + ' on ' + ranks.get(rank).host + ': ' +
    doingText(rankClasses[classOf.get(rank)]))));
  const rows = Math.ceil(squares.length / kColumns);
  return svg('svg', {class: 'map', viewBox: `0 0 ${kColumns * kCell} ${rows * kCell}`, role: 'img',
    'aria-label': 'Every rank, coloured by its class'}, squares);
}

const kDid = {
  'waits': 'waited',
  'creates a communicator': 'was creating a communicator',
  'on the host': 'was on the host'
};
const doingText = one => (one.ending ? kDid[one.doing] + ', then ended (' + one.ending + ')' : one.doing);

function classRow(one, index) {
  const odd = isSuspected(one);
  const waited = one.since === null ? '' : lengthText(Math.max(0, lastOf(one.first) - one.since));
  return el('tr', {class: odd ? 'is-suspected' : null},
    el('th', {scope: 'row', class: odd ? 'suspected' : null},
      el('i', {class: 'swatch', style: 'background: ' + classColour(index)}), shortened(one.ranks, 200),
      odd ? '\u00a0(suspected)' : ''),
    el('td', {class: 'number'}, String(one.size)), el('td', null, doingText(one)), el('td', {class: 'number'}, waited),
    el('td', {class: 'number'}, one.step === null ? '' : String(one.step)),
    el('td', null, [one.phase, one.module].filter(Boolean).join(' / ')),
    el('td', null,
      one.call ?
        [
          code(callText(one.call)),
          el('div', {class: 'dim'},
            (one.doing === 'on the host' ? 'the last: ' : '') + 'call ' + one.call.number + ' of ' + commName(one.call))
        ] :
        ''),
    el('td', null, one.place ? code(one.place) : '', one.stack ? el('div', {class: 'dim'}, 'its stack') : null));
}

function drawRanks() {
  const kShown = 40;
  const rows = rankClasses.slice(0, kShown).map(classRow);
  const hidden = rankClasses.length - rows.length;
  return section('ranks',
    'What the ranks are doing: ' + (rankClasses.length === 1 ? 'one class' : rankClasses.length + ' classes'),
    page.ranks.length > kLanesByRank ?
      [
        rankMap(),
        el('p', {class: 'dim'}, 'A square for each rank, 64 in a row; its colour is that of its class below.')
      ] :
      null,
    table(
      [
        'ranks', {title: 'how many', number: true}, 'state', {title: 'for', number: true},
        {title: 'step', number: true}, 'phase / module', 'call', 'at'
      ],
      rows, {label: 'Classes of ranks'}),
    hidden > 0 ? el('p', {class: 'dim'}, hidden + ' more classes are not shown; the table of calls has their ranks.') :
                 null);
}
