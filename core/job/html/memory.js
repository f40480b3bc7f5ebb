// Device memory: the peak of each rank and what is known of it, and how it went step by step.

const kCurveColours = ['--gather', '--broadcast', '--reduce', '--scatter', '--pointed', '--odd'];

const percent = (part, whole) => Math.min(100, 100 * part / Math.max(1, whole)).toFixed(1) + '%';

function meter(one, whole) {
  const drawn = el('div', {class: 'meter', role: 'img', 'aria-label': bytesText(one.need) + ' of ' + bytesText(whole)});
  if (one.reserved) drawn.append(el('b', {class: 'reserved', style: 'width:' + percent(one.reserved, whole)}));
  drawn.append(el('b', {style: 'width:' + percent(one.need, whole)}),
    el('b', {class: 'usual', style: 'width:' + percent(one.usual, whole)}));
  return drawn;
}

function failureText(failure) {
  const at = [
    failure.step === null ? '' : 'step ' + failure.step, text(failure.phase), text(failure.module), place(failure.site)
  ].filter(Boolean);
  return 'a request of ' + bytesText(failure.size) + ' failed with ' + bytesText(failure.free) + ' free' +
    (failure.retried ? ', and succeeded when it was made again' : '') + (at.length ? ': ' + at.join(', ') : '');
}

const kAsUsual = 1.005;

// What is known of the peak: where, with which batch, how far above the usual step, and what failed there.
function causes(one) {
  const said = [];
  const cause = one.cause || {};
  const at =
    [cause.phase ? text(cause.phase) : '', cause.module ? 'module ' + text(cause.module) : ''].filter(Boolean).join(
      ', ');
  if (at) said.push('reached in ' + at);
  if (cause.batch && cause.batch.length) said.push('batch ' + cause.batch.join(' × '));
  if (one.usual && one.need > kAsUsual * one.usual)
    said.push(bytesText(one.need - one.usual) + ' above the usual step (' + bytesText(one.usual) + ')');
  else if (one.usual)
    said.push('as in the usual step');
  if (cause.retries) said.push(cause.retries + ' requests succeeded only after the allocator flushed its cache');
  for (const failure of one.failures.slice(0, 4)) said.push(el('span', {class: 'failed'}, failureText(failure)));
  return said;
}

function peakRow(one, whole) {
  const odd = suspects.has(one.rank);
  return el('tr', {class: odd ? 'is-suspected' : null},
    el('th', {scope: 'row', class: odd ? 'suspected' : null}, 'rank ' + one.rank),
    el('td', {class: 'bar-cell'}, meter(one, whole)), el('td', {class: 'number'}, bytesText(one.need)),
    el('td', {class: 'number'}, one.total ? percent(one.need, one.total) : ''),
    el('td', {class: 'number'}, one.reserved ? bytesText(one.reserved) : ''),
    el('td', {class: 'number'}, one.peak_step === null || one.peak_step === undefined ? '' : String(one.peak_step)),
    el('td', null, causes(one).map(line => el('div', null, line))));
}

// A round number of the fitting unit, not below what is given.
function niceStep(kib) {
  let unit = 1;
  while (kib / unit >= 1024) unit *= 1024;
  return unit * ([1, 2, 4, 5, 10, 20, 25, 50, 100, 200, 250, 500].find(step => step >= kib / unit) || 1024);
}

const kChart = {width: 1180, height: 230, left: 74, right: 16, bottom: 24};
const needOf = point => (point[2] !== null ? point[2] : point[4]);
const curveColour = i => 'var(' + kCurveColours[i % kCurveColours.length] + ')';

// Where times and sizes lie in the picture; the device's limit is in it where a quarter of it was ever needed.
function memoryScale(shown) {
  const points = shown.flatMap(one => one.curve), failures = shown.flatMap(one => one.failures);
  const total = Math.max(0, ...shown.map(one => one.total || 0));
  const highest = Math.max(1, ...points.map(point => Math.max(needOf(point), point[3] || 0)));
  const top = (failures.length || highest > total / 4 ? Math.max(total, highest) : highest) * 1.04;
  const times = [...points.map(point => point[0]), ...failures.map(failure => failure.at)];
  const from = Math.min(...times), to = Math.max(from + 1, ...times);
  const {width, height, left, right, bottom} = kChart;
  return {
    total, top, from, to,
    x: time => left + (width - left - right) * (time - from) / (to - from),
    y: kib => (height - bottom) * (1 - kib / top) + 6,
  };
}

function memoryAxes(scale) {
  const {width, height, left, right} = kChart, end = width - right, drawn = [];
  const line = (kind, y) => svg('line', {class: kind, x1: left, x2: end, y1: y, y2: y});
  const label = (kind, x, y, anchor, said) => svg('text', {class: kind, x, y, 'text-anchor': anchor}, said);
  for (let kib = 0, by = niceStep(scale.top / 4); kib <= scale.top; kib += by) {
    drawn.push(line('axis', scale.y(kib)), label('dim', left - 6, scale.y(kib) + 4, 'end', bytesText(kib)));
  }
  if (scale.total && scale.total <= scale.top) {
    const y = scale.y(scale.total);
    drawn.push(line('limit', y), label('odd', end - 4, y - 4, 'end', 'the device has ' + bytesText(scale.total)));
  }
  drawn.push(label('dim', left, height - 4, 'start', timeText(scale.from)),
    label('dim', end, height - 4, 'end', timeText(scale.to)));
  return drawn;
}

function memoryCurve(scale, one, colour) {
  const path = pick => one.curve.map((point, i) =>
    (i ? 'L' : 'M') + scale.x(point[0]).toFixed(1) + ' ' + scale.y(pick(point)).toFixed(1)).join('');
  const style = 'stroke: ' + colour, drawn = [];
  if (one.curve.every(point => point[3] !== null)) {
    drawn.push(svg('path', {class: 'curve reserved', d: path(point => point[3]), style}));
  }
  drawn.push(svg('path', {class: 'curve', d: path(needOf), style}, svg('title', null, 'rank ' + one.rank)));
  for (const failure of one.failures) {
    const x = scale.x(failure.at) - 6, y = scale.y(scale.total || scale.top) + 2;
    drawn.push(svg('path', {class: 'failure', d: `M${x} ${y}l12 12m0 -12l-12 12`},
      svg('title', null, failureText(failure))));
  }
  return drawn;
}

// One curve a rank: peaks of steps as a line, what the allocator had reserved dashed.
function curves(shown) {
  const scale = memoryScale(shown);
  const legend = shown.map((one, i) =>
    el('span', null, el('i', {style: 'background: ' + curveColour(i)}), 'rank ' + one.rank));
  return [
    svg('svg', {
      viewBox: `0 0 ${kChart.width} ${kChart.height}`, role: 'img',
      'aria-label': 'Device memory of ' + shown.map(one => 'rank ' + one.rank).join(', '),
    }, memoryAxes(scale), shown.map((one, i) => memoryCurve(scale, one, curveColour(i))).flat()),
    el('div', {class: 'legend'}, legend, el('span', null, 'dashed: reserved by the allocator'),
      shown.some(one => one.failures.length) ? el('span', {class: 'failed'}, '✕ a request that failed') : null),
  ];
}

const kPeakColumns = ['rank', 'peak', {title: 'at most', number: true}, {title: 'of the device', number: true},
  {title: 'reserved', number: true}, {title: 'step', number: true}, 'what made it'];

function drawMemory() {
  const all = page.memory;
  if (all.length === 0) return null;
  const kFirst = 8, kCurves = 6;
  const whole = Math.max(...all.map(one => Math.max(one.total || 0, one.need, one.reserved || 0)));
  const withCurves = all.filter(one => one.curve && one.curve.length > 1);
  const chosen = [...withCurves.filter(one => suspects.has(one.rank)),
    ...withCurves.filter(one => !suspects.has(one.rank))].slice(0, kCurves);
  const peaks = shown => table(kPeakColumns, shown.map(one => peakRow(one, whole)),
    {class: 'peaks', label: 'Peaks of memory'});
  const room = el('div', null, peaks(all.slice(0, kFirst)));
  const showAll = () => {
    room.replaceChildren(peaks(all));
    more.remove();
  };
  const more = all.length > kFirst ?
    el('button', {type: 'button', onclick: showAll}, 'show all ' + all.length + ' ranks') : null;
  return section('memory', 'Device memory', chosen.length ? curves(chosen) : null, el('h3', null, 'Peak of each rank'),
    room, more, el('p', {class: 'dim'}, all.some(one => one.of_torch) ?
      'What torch had allocated at most in a step; green is the usual step, grey what its allocator had reserved.' :
      'What was allocated at most by the calls that were seen; green is the usual step. NCCL, the context and other ' +
      'processes take more.'));
}
