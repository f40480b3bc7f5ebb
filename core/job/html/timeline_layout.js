// Ranks × time around the parting.  Stretches in which nothing begins or ends are shortened, so that calls of
// milliseconds stay visible beside a wait of minutes.

const kLanesByRank = 16, kLanes = 28, kLaneHeight = 30, kLabel = 210, kTop = 22, kWidth = 1180;
const kColours = [
  [/gather/, 'gather', 'all_gather'], [/scatter/, 'scatter', 'reduce_scatter'],
  [/all_reduce|^reduce/, 'reduce', 'all_reduce'], [/broadcast/, 'broadcast', 'broadcast'],
  [/send|recv/, 'pointed', 'send, receive'], [/./, 'other', 'other']
];

const kindOf = op => kColours.find(([pattern]) => pattern.test(op));
const colourOf = op => 'var(--' + kindOf(op)[1] + ')';
const shortOp = op => op.split('_').map(word => word.slice(0, 1).toUpperCase()).join('');

// One lane a rank of a small job, else one a class, drawn by its first rank.
function makeLanes() {
  if (page.ranks.length <= kLanesByRank) {
    return [...ranks.keys()].map(rank => ({label: 'rank ' + rank, rank, odd: suspects.has(rank)}));
  }
  return rankClasses.slice(0, kLanes).map(one => ({
    label: ranksText(one.ranks),
    note: one.size > 1 ? one.size + ' ranks' : '',
    rank: one.first,
    odd: [...one.members].some(rank => suspects.has(rank)),
  }));
}

// The moment at which the ranks part: the first of their calls from there on.
function partingTime(lanes) {
  let first = Infinity, newest = 0;
  const from = origin === null ? parting : Math.min(origin, parting);
  for (const lane of lanes) {
    for (const call of ranks.get(lane.rank).calls) {
      newest = Math.max(newest, call.enter);
      if (from !== null && call.comm === partingComm && call.number >= from && !isPointed(call))
        first = Math.min(first, call.enter);
    }
  }
  return first === Infinity ? newest : first;
}

function chooseCalls(lanes, before) {
  const at = partingTime(lanes), after = 3 * before;
  for (const lane of lanes) {
    const calls = ranks.get(lane.rank).calls;
    let pivot = calls.findIndex(call => call.enter >= at);
    if (pivot < 0) pivot = calls.length;
    lane.calls = calls.slice(Math.max(0, pivot - before), pivot + after);
  }
}

// Maps moments to places: gaps between events keep their proportion up to a limit that leaves none more than a share.
function makeScale(lanes) {
  const moments = new Set([page.now]);
  for (const lane of lanes) {
    for (const call of lane.calls) {
      moments.add(call.enter);
      if (call.end !== null) moments.add(call.end);
    }
    const ended = ranks.get(lane.rank).ended;
    if (ended !== null) moments.add(ended);
  }
  const times = [...moments].sort((a, b) => a - b);
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  const share = Math.max(0.05, 1.6 / Math.max(1, gaps.length));
  let limit = Math.max(1, ...gaps);
  for (let round = 0; round < 60; ++round) {
    const whole = gaps.reduce((sum, gap) => sum + Math.min(gap, limit), 0);
    if (limit <= share * whole) break;
    limit = Math.max(1, limit * 0.8);
  }
  const whole = Math.max(1, gaps.reduce((sum, gap) => sum + Math.min(gap, limit), 0));
  const room = kWidth - kLabel - 12, places = [kLabel];
  gaps.forEach((gap, i) => places.push(places[i] + room * Math.min(gap, limit) / whole));
  const cuts = gaps.map((gap, i) => ({gap, from: places[i], to: places[i + 1]})).filter(cut => cut.gap > 1.5 * limit);
  const at = time => {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < time)
        low = middle + 1;
      else
        high = middle;
    }
    return places[low];
  };
  return {times, places, cuts, at};
}

// Places of a lane's bars; calls that overlap lie in up to three rows.
function placeBars(lane, scale) {
  const rows = [];
  return lane.calls.map(call => {
    const until = call.end !== null ? call.end : lastOf(call.rank);
    const from = scale.at(call.enter), to = Math.max(from + 3, scale.at(until) - 1);
    let row = rows.findIndex(end => end <= from + 0.5);
    if (row < 0) row = rows.length < 3 ? rows.length : 2;
    rows[row] = to;
    return {call, from, to, row};
  });
}

// Gives each lane its bars and its place; returns where the last one ends.
function placeLanes(lanes, scale) {
  let y = kTop;
  for (const lane of lanes) {
    lane.bars = placeBars(lane, scale);
    const rows = 1 + Math.max(0, ...lane.bars.map(bar => bar.row));
    lane.y = y;
    lane.rowHeight = rows === 1 ? kLaneHeight - 8 : 17;
    lane.height = 8 + rows * lane.rowHeight;
    y += lane.height;
  }
  return y;
}
