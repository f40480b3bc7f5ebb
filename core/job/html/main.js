// Puts the page together.  What goes wrong is said on the page.

const kSections = [
  ['findings', 'Finding', drawFindings], ['ranks', 'Ranks', drawRanks], ['timeline', 'Time', drawTimeline],
  ['lists', 'Side by side', drawLists], ['stacks', 'Stacks', drawStacks], ['memory', 'Memory', drawMemory],
  ['calls', 'Calls', drawTable]
];

function drawPage() {
  document.title = 'dshang: ' + report.verdict + (finding ? ' [' + finding.class + ']' : '');
  document.getElementById('head').append(...drawHead());
  const main = document.getElementById('main'), links = [];
  for (const [id, title, drawIt] of kSections) {
    try {
      const drawn = drawIt();
      if (!drawn) continue;
      main.append(drawn);
      links.push(el('li', null, el('a', {href: '#' + id}, title)));
    } catch (error) {
      main.append(
        section(id, title, el('p', {class: 'failed', 'data-failed': id}, 'This part could not be drawn: ' + error)));
      console.error(error);
    }
  }
  document.getElementById('contents').append(el('ul', null, links));
  const list = document.getElementById('lists');
  if (list) scrollToParting(list);
}

document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
    return;
  const search = document.getElementById('search');
  if (!search) return;
  event.preventDefault();
  search.focus();
});

drawPage();
