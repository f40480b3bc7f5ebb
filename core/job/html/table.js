// Every call in the file, to be searched: words that all must be there, and field:value for one column.

const kRowsAtOnce = 200;
const kFields = {
  rank: call => String(call.rank),
  call: call => String(call.number),
  step: call => String(call.step),
  op: call => call.op,
  comm: commName,
  state: call => kProgress[call.progress],
  module: call => call.module,
  phase: call => call.phase,
  at: call => call.place,
};
const kExact = new Set(['rank', 'call', 'step']);

function matcher(query) {
  const tests = query.toLowerCase().split(/\s+/).filter(Boolean).map(word => {
    const [, field, value] = /^([a-z]+):(.+)$/.exec(word) || [];
    if (field && kFields[field]) {
      return kExact.has(field) ? call => kFields[field](call) === value :
                                 call => kFields[field](call).toLowerCase().includes(value);
    }
    return call => searchText(call).includes(word);
  });
  return call => tests.every(test => test(call));
}

function searchText(call) {
  if (call.searched === undefined) {
    call.searched = [
      callText(call), commName(call), call.phase, call.module, call.place, kProgress[call.progress]
    ].join(' ').toLowerCase();
  }
  return call.searched;
}

function tableRow(call) {
  const odd = isOdd(call);
  return el('tr', {class: odd ? 'is-suspected' : null},
    el('td', {class: classes('number', odd && 'suspected')}, String(call.rank)), el('td', null, commName(call)),
    el('td', {class: 'number'}, String(call.number)), el('td', {class: 'what'}, code(callText(call))),
    el('td', {class: 'number'}, call.step === null ? '' : String(call.step)),
    el('td', null, [call.phase, call.module].filter(Boolean).join(' / ')),
    el('td', null,
      call.place ? el('details', null, el('summary', null, code(call.place)),
                     frames(call.site).map(frame => el('code', {class: 'dim', style: 'display: block'}, frame))) :
                   ''),
    el('td', {class: 'number'}, timeText(call.enter)),
    el('td', {class: 'number'}, call.end === null ? '' : lengthText(call.end - call.enter)),
    el('td', null, kProgress[call.progress]));
}

function drawTable() {
  const all = [...ranks.values()].flatMap(one => one.calls);
  all.sort((a, b) => isOdd(b) - isOdd(a) || b.enter - a.enter || a.rank - b.rank);
  if (all.length === 0) return null;
  const leftOut = [...ranks.values()].reduce((sum, one) => sum + one.leftOut, 0);
  const count = el('span', {class: 'dim', 'aria-live': 'polite'}), body = el('tbody');
  let found = all, shown = 0;
  const more = el('button', {type: 'button', onclick: () => extend()}, 'show more');
  const extend = () => {
    body.append(...found.slice(shown, shown + kRowsAtOnce).map(tableRow));
    shown = Math.min(found.length, shown + kRowsAtOnce);
    count.replaceChildren(
      found.length + ' of ' + all.length + ' calls' + (shown < found.length ? ', the newest ' + shown + ' shown' : ''));
    more.hidden = shown >= found.length;
  };
  const search = query => {
    const test = matcher(query);
    found = all.filter(test);
    shown = 0;
    body.replaceChildren();
    extend();
  };
  const input = el('input', {
    type: 'search',
    id: 'search',
    placeholder: 'all_gather step:4 rank:1 state:waits model.py',
    'aria-label': 'Search the calls',
    oninput: () => {
      clearTimeout(input.timer);
      input.timer = setTimeout(() => search(input.value), 120);
    }
  });
  const drawn = table(
    [
      {title: 'rank', number: true}, 'communicator', {title: 'call', number: true}, 'what',
      {title: 'step', number: true}, 'phase / module', 'at', {title: 'entered', number: true},
      {title: 'took', number: true}, 'state'
    ],
    [], {label: 'Calls'});
  drawn.querySelector('tbody').replaceWith(body);
  extend();
  return section('calls', 'Calls', el('div', {class: 'controls'}, input, count), drawn, more,
    el('p', {class: 'dim'}, 'The odd calls first, then the newest. Words must all be there; ',
      Object.keys(kFields).join(', '), ' can be asked for as name:value; ', code('/'), ' goes to the search.',
      leftOut > 0 ?
        [
          ' ' + leftOut + ' earlier calls are not in this file: ', code('dshang report DIR --dump'),
          ' has what is still recorded of them.'
        ] :
        null));
}
