// Calls side by side: one row a call of a communicator, one column a class of its members.

const sameCall = (a, b) => a && b && callText(a) === callText(b);
const sameWhere = (a, b) => a.step === b.step && a.phase === b.phase && a.module === b.module && a.place === b.place;

function callsOf(list, one) {
  const calls = new Map();
  for (const call of ranks.get(one.first).calls) {
    if (call.comm === list.comm && !isPointed(call) && call.progress !== kFailed && call.number > 0)
      calls.set(call.number, call);
  }
  return calls;
}

function cellOf(call, usual, one, number) {
  if (!call) {
    if (number < one.known_from) return el('td', {class: 'dim'}, 'no longer recorded');
    return el('td', {class: 'absent'}, number > one.last ? 'not made' : 'not in this file');
  }
  const odd = isOdd(call);
  const differs = usual && usual !== call && !(sameCall(call, usual) && sameWhere(call, usual));
  return el('td', {class: classes(odd ? 'is-odd' : differs && 'differs')}, code(callText(call)),
    call.progress === kWaits ? [' ', badge('waits', 'warning')] : null, el('span', {class: 'where'}, whereText(call)));
}

function numberCell(list, number) {
  const notes = [];
  if (list.comm === partingComm) {
    if (number === parting) notes.push('visible here');
    if (number === origin) notes.push('parted here');
    if (parted.agreed_until === number) notes.push('agreed until here');
  }
  return el('th', {scope: 'row', class: 'number'}, String(number), notes.map(note => el('small', null, note)));
}

function listRows(list, all) {
  const columns = list.classes.map(one => callsOf(list, one)), rows = [];
  for (let number = list.from; number <= list.to; ++number) {
    const calls = columns.map(column => column.get(number));
    const usual = calls[0] || calls.find(Boolean);
    const alike =
      calls.every(call => call && sameCall(call, usual) && sameWhere(call, usual) && call.progress === usual.progress);
    const isParting = list.comm === partingComm && number === parting;
    const kind = classes(isParting && 'visible', list.comm === partingComm && number === origin && 'origin');
    if (alike && calls.length > 1 && !all && !isParting) {
      rows.push(el('tr', {class: kind}, numberCell(list, number),
        el('td', {class: 'alike', colspan: calls.length}, 'all: ', code(callText(usual)),
          el('span', {class: 'where'}, whereText(usual)))));
    } else {
      rows.push(el('tr', {class: kind}, numberCell(list, number),
        calls.map((call, i) => cellOf(call, usual, list.classes[i], number))));
    }
  }
  return rows;
}

function listTable(list) {
  const head = list.classes.map(one => {
    const odd = ranksIn(one.ranks).some(rank => suspects.has(rank));
    return {
      title: el('span', {class: odd ? 'suspected' : null},
        ranksText(one.ranks.length > 40 ? one.ranks.slice(0, 38) + '…' : one.ranks),
        one.size > 1 ? el('span', {class: 'dim'}, ' (' + one.size + ')') : null, odd ? ' ◆ suspected' : '')
    };
  });
  return table(
    [{title: 'call', number: true}, ...head], listRows(list, false), {class: 'lists', label: 'Calls side by side'});
}

function scrollToParting(room) {
  const row = room.querySelector('tr.visible'), box = room.querySelector('.scroll');
  if (box) box.scrollTop = row ? Math.max(0, row.offsetTop - box.clientHeight / 2) : box.scrollHeight;
}

function drawLists() {
  if (page.lists.length === 0) return null;
  const room = el('div'), note = el('p', {class: 'dim'});
  const show = index => {
    const list = page.lists[index];
    room.replaceChildren(listTable(list));
    note.replaceChildren(
      list.classes_left_out > 0 ? list.classes_left_out + ' more classes of this communicator are not shown. ' : '',
      'Each column is drawn by its first rank; rows in which all agree are one cell.');
    scrollToParting(room);
  };
  const options =
    page.lists.map((list, i) => [i,
                     page.comms[list.comm].name + ' (' + page.comms[list.comm].size + ' ranks, ' +
                       (list.classes.length === 1 ? 'all alike' : list.classes.length + ' classes') + ')']);
  const drawn = section('lists', 'Calls side by side',
    el('div', {class: 'controls'}, choice('communicator:', options, 0, show),
      page.lists_left_out > 0 ? el('span', {class: 'dim'}, page.lists_left_out + ' more communicators are not shown') :
                                null),
    room, note);
  show(0);
  return drawn;
}
