// The report and the records around it, as core/job/page_data.h writes them, decoded for drawing.

const report = JSON.parse(document.getElementById('report').textContent);
const page = JSON.parse(document.getElementById('records').textContent);

const text = number => page.texts[number];
const place = site => text(page.sites[site][0]);
const frames = site => page.sites[site][1].map(text);  // innermost first

const kWaits = 1, kFailed = 3;
const kProgress = ['done', 'waits', 'returned', 'failed', 'in an open group'];

// "0-2, 7" -> [0, 1, 2, 7]
function ranksIn(list) {
  const ranks = [];
  for (const part of list.split(', ')) {
    if (part === '') continue;
    const [from, to] = part.split('-').map(Number);
    for (let rank = from; rank <= (to === undefined ? from : to); ++rank) ranks.push(rank);
  }
  return ranks;
}

// [0, 1, 2, 3, 7] -> "0-3, 7"
function listOf(ranks) {
  const parts = [];
  for (let i = 0; i < ranks.length;) {
    let end = i;
    while (end + 1 < ranks.length && ranks[end + 1] === ranks[end] + 1) ++end;
    if (end >= i + 3)
      parts.push(ranks[i] + '-' + ranks[end]);
    else
      for (let at = i; at <= end; ++at) parts.push(String(ranks[at]));
    i = end + 1;
  }
  return parts.join(', ');
}

const isMany = list => /[-,]/.test(list);
const ranksText = list => (isMany(list) ? 'ranks ' : 'rank ') + list;

function decodeCall(row, rank) {
  const [comm, number, op, count, dtype, reduceOp, other, step, phase, module, site, enter, end, started, progress] =
    row;
  return {
    rank,
    comm,
    number,
    op: text(op),
    count,
    dtype: text(dtype),
    reduceOp: text(reduceOp),
    other,
    step,
    phase: text(phase),
    module: text(module),
    site,
    place: place(site),
    enter,
    end: end === null ? null : enter + end,
    started: started === null ? null : enter + started,
    progress,
  };
}

const ranks = new Map(page.ranks.map(one => [one.rank, {
  rank: one.rank,
  host: text(one.host),
  pid: one.pid,
  ending: text(one.ending),
  ended: one.ended,
  leftOut: one.left_out,
  calls: one.calls.map(row => decodeCall(row, one.rank)),
}]));

const rankClasses = page.classes.map(one => Object.assign({}, one, {
  doing: text(one.doing),
  ending: text(one.ending),
  phase: text(one.phase),
  module: text(one.module),
  place: place(one.site),
  call: one.call && decodeCall(one.call, one.first),
  members: new Set(ranksIn(one.ranks)),
}));

// Until when something is known of a rank.
const lastOf = rank => (ranks.get(rank).ended === null ? page.now : ranks.get(rank).ended);

const isPointed = call => /send|recv/.test(call.op);
const commName = call => call.comm === null ? '?' : page.comms[call.comm].name;

function callText(call) {
  let said = call.op + ' of ' + call.count;
  if (call.dtype) said += ' ' + call.dtype;
  if (call.reduceOp) said += ' ' + call.reduceOp;
  if (call.other >= 0) said += (isPointed(call) ? ', peer ' : ', root ') + call.other;
  return said;
}

const whereText = call => [call.step === null ? '' : 'step ' + call.step, call.phase,
  call.module && 'module ' + call.module, call.place]
                            .filter(Boolean)
                            .join(' · ');

function timeText(us) {
  if (us === null || us === undefined) return '';
  return (us / 1e6).toFixed(us < 1e7 ? 3 : 2) + ' s';
}

function lengthText(us) {
  if (us === null) return '';
  if (us < 1000) return us + ' µs';
  if (us < 1e6) return (us / 1000).toFixed(us < 1e4 ? 1 : 0) + ' ms';
  return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + ' s';
}

function bytesText(kib) {
  if (kib === null || kib === undefined) return 'unknown';
  if (kib < 1024) return kib + ' KiB';
  if (kib < 1024 * 1024) return (kib / 1024).toFixed(kib < 10240 ? 1 : 0) + ' MiB';
  return (kib / 1024 / 1024).toFixed(1) + ' GiB';
}

// What the page points at: the first finding, and the first that has a place among the calls (where a rank ran
// out of memory that may be the hang that followed).
const finding = report.findings[0] || null;
const commOf = one => (one.comm === null ? -1 : page.comms.findIndex(comm => comm.name === one.comm));
const parted = report.findings.find(one => one.call !== null && commOf(one) >= 0) || null;
const suspects = new Set(finding ? [...finding.suspects, ...(parted ? parted.suspects : [])] : []);
const partingComm = parted ? commOf(parted) : -1;
const parting = parted && parted.call;
const origin = parted && parted.origin;

const atParting = call => parting !== null && call.comm === partingComm && call.number === parting && !isPointed(call);
// Without suspects every side's call at the parting is as odd as the others'.
const isOdd = call =>
  atParting(call) && (parted.suspects.includes(call.rank) || (parted.suspects.length === 0 && parted.sides.length > 1));
