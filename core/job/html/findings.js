// The findings, the first one whole: what, who, why, what to do.

function sideText(side) {
  const said = [];
  if (side.op)
    said.push(
      [side.op, side.count === null ? '' : 'of ' + side.count, side.dtype, side.reduce_op].filter(Boolean).join(' '));
  if (side.root !== null) said.push('root ' + side.root);
  if (side.peer !== null) said.push('peer ' + side.peer);
  return said.join(', ');
}

function sideRow(side, one) {
  const odd = side.ranks.some(rank => one.suspects.includes(rank));
  const cell = value => el('td', null, value === null ? '' : String(value));
  return el('tr', {class: odd ? 'is-suspected' : null},
    el('td', {class: odd ? 'suspected' : null}, listOf(side.ranks), odd ? '\u00a0(suspected)' : ''),
    el('td', null, code(sideText(side))), cell(side.step), cell(side.phase), cell(side.module),
    el('td', null, side.site ? code(side.site) : '',
      side.user_site && side.user_site !== side.site ?
        el('div', {class: 'dim'}, 'from ', code(side.user_site)) : null));
}

function sidesTable(one) {
  if (one.sides.length === 0) return [];
  const columns = ['ranks', 'call', 'step', 'phase', 'module', 'at'];
  const drawSides = sides => table(columns, sides.map(side => sideRow(side, one)), {label: 'Sides'});
  return [el('h3', null, 'What each side is doing'), folded(one.sides, 12, drawSides)].flat();
}

const listText = list => list.length > 0 ? listOf([...list].sort((a, b) => a - b)) : '';

function positions(one) {
  const said = [];
  if (one.suspects.length) said.push(['suspected', ranksText(listText(one.suspects))]);
  if (one.waiting.length) said.push(['waiting', ranksText(listText(one.waiting))]);
  if (one.comm !== null)
    said.push(['communicator', one.comm + (one.comm_ranks.length ? ' (ranks ' + listText(one.comm_ranks) + ')' : '')]);
  if (one.call !== null) said.push(['visible at call', String(one.call)]);
  if (one.origin !== null) said.push(['parted at call', String(one.origin)]);
  if (one.agreed_until !== null) said.push(['agreed until call', String(one.agreed_until)]);
  if (one.step !== null) said.push(['step', String(one.step)]);
  said.push(['began', one.at.toFixed(1) + ' s']);
  return el('div', {class: 'facts'}, said.map(([name, value]) => el('span', null, name + ' ', el('b', null, value))));
}

function body(one) {
  const list = tag => lines => el(tag, null, lines.map(line => el('li', null, prose(line))));
  const evidence = one.evidence.length ? [el('h3', null, 'Evidence'), folded(one.evidence, 12, list('ul'))].flat() : [];
  const fix = one.fix.length ? el('div', {class: 'fix'}, el('h3', null, 'What to do'), list('ol')(one.fix)) : null;
  return [el('div', {class: 'two'}, el('div', null, evidence), fix), ...sidesTable(one)];
}

function badges(one) {
  return el('div', {class: 'badges'}, badge(one.severity.toUpperCase(), one.severity), badge(one.class),
    badge(one.certainty + '; the explanation is ' + one.class_certainty),
    one.resolved !== null ? badge('ended at ' + one.resolved.toFixed(1) + ' s') : null,
    one.consequence_of !== null ? badge('follows from ' + report.findings[one.consequence_of].class) : null);
}

// One of the further findings, folded.
function further(one) {
  const head = one.resolved !== null ? badge('ended') : badge(one.severity.toUpperCase(), one.severity);
  return el('details', {class: 'finding'},
    el('summary', null, head, ' [' + one.class + '] ' + shortened(one.summary, 300)),
    badges(one), positions(one), body(one));
}

function drawFindings() {
  if (!finding) {
    return el('section', {id: 'findings', class: 'first is-' + report.verdict}, el('h2', null, 'Nothing was found'),
      el('p', null, 'No detector found anything in what was recorded. Below is how the job ended.'),
      notChecked());
  }
  return el('section', {id: 'findings', class: 'first is-' + finding.severity}, badges(finding),
    el('p', {class: 'summary'}, prose(finding.summary)), positions(finding), body(finding),
    report.findings.slice(1).map(further), notChecked());
}

function notChecked() {
  if (report.not_checked.length === 0) return null;
  return el('details', {class: 'finding'}, el('summary', null, 'Not checked (' + report.not_checked.length + ')'),
    el('ul', null, report.not_checked.map(line => el('li', null, line))));
}

function drawHead() {
  const job = report.job;
  const facts = [
    ['ranks', job.world_size], ['nodes', job.nodes], ['attempt', page.attempt], ['started', job.started],
    ['as of', report.as_of.toFixed(1) + ' s'], ['files', job.dir], ['dshang', report.dshang]
  ];
  return [
    el('h1', null, 'dshang report ', badge(report.verdict.toUpperCase(), report.verdict)),
    el(
      'div', {class: 'facts'}, facts.map(([name, value]) => el('span', null, name + ' ', el('b', null, String(value)))))
  ];
}
