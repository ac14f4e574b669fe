import WormholeWeb

extension WebPage {
  /// The page of `wormhole serve`.
  static let container = WebPage(
    title: "Wormhole",
    style: """
      :root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif }
      body { margin: 1.2rem auto; max-width: 76rem; padding: 0 1rem }
      h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: 1rem; margin: 1.6rem 0 .3rem }
      header { display: flex; gap: 1rem; align-items: baseline; flex-wrap: wrap }
      .wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
      th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top }
      td { border-top: 1px solid #8886; overflow-wrap: anywhere; unicode-bidi: isolate }
      td.n { text-align: right; font-variant-numeric: tabular-nums }
      td.file, td.at, .value { font-family: ui-monospace, monospace; font-size: .85rem }
      tr.new td { background: #ffd54a40 } .bar { display: inline-block; height: .6rem;
        background: #3b78d8; margin-right: .4rem } .none { opacity: .8 }
      form { display: flex; gap: .5rem; flex-wrap: wrap; margin: .6rem 0 }
      :focus-visible { outline: 3px solid #3b78d8; outline-offset: 2px }

      """,
    body: """
      <header><h1>Wormhole</h1><span id="container"></span>
      <span id="status" role="status">○ connecting</span></header>
      <main id="lists"></main>
      <form id="change" hidden><label>Channel <input id="name" required></label>
      <label>Value <input id="value"></label><button>Put</button>
      <button type="button" id="clear">Clear</button></form>
      <p id="answer" role="status"></p>

      """,
    script: """
      const lists = [
        ['channels', 'Channels', {name: 'Name', value: 'Value', version: 'Version',
          writer: 'Writer', at: 'Written', file: 'File'}],
        ['queues', 'Queues', {name: 'Name', kind: 'Kind', waiting: 'Waiting',
          claimed: 'Claimed', dead: 'Dead', file: 'Files'}],
        ['members', 'Members', {name: 'Name', state: 'State', program: 'Program',
          process: 'Process', info: 'Info', file: 'Files'}],
        ['machines', 'Between machines', {name: 'Name', kind: 'Kind', standing: 'State',
          waiting: 'Not confirmed', age: 'Oldest, s', gaps: 'Gaps', file: 'Files'}],
        ['locks', 'Locks held', {name: 'Name', holder: 'Holder', file: 'File'}],
        ['events', 'Events', {at: 'Time', text: 'Event'}],
      ];
      const signs = {running: '▶ ', stopped: '‖ ', 'not running': '■ '};
      let before = {};
      const cell = (row, key) => {
        const value = row[key], td = make('td', undefined, typeof value === 'number' ? 'n' : key);
        if (key === 'value' && row.cleared) td.append(make('em', 'cleared'));
        else td.append((key === 'state' ? signs[value] : '') + value);
        if (key === 'waiting' && value > 0) {
          const bar = make('span', undefined, 'bar');
          bar.style.width = Math.min(120, 2 + value) + 'px';
          td.prepend(bar);
        }
        return td;
      };
      const table = (name, title, columns, rows, more, refusal) => {
        const box = make('section'), wide = make('div', undefined, 'wide');
        const heading = make('h2', title + ' (' + (rows.length + more) + ')');
        heading.id = 'of-' + name;
        box.append(heading, wide);
        box.setAttribute('aria-labelledby', heading.id);
        if (refusal || !rows.length) wide.append(make('p', refusal || 'none', 'none'));
        if (!rows.length) return box;
        const all = make('table'), head = make('tr'), body = make('tbody');
        for (const key in columns) {
          const th = make('th', columns[key]);
          th.scope = 'col';
          head.append(th);
        }
        all.append(make('thead'), body);
        all.firstChild.append(head);
        for (const row of rows) {
          const id = name + '/' + (row.file || row.at + row.text), text = JSON.stringify(row);
          const isNew = before.seen && before[id] !== text && name !== 'events';
          const tr = make('tr', undefined, isNew ? 'new' : '');
          for (const key in columns) tr.append(cell(row, key));
          body.append(tr);
          next[id] = text;
        }
        wide.append(all);
        if (more) wide.append(make('p', 'and ' + more + ' more'));
        return box;
      };
      let next = {};
      const show = state => {
        if (!state.channels) return;
        next = {seen: true};
        $('container').textContent = state.container;
        $('lists').replaceChildren(...lists.map(([name, title, columns]) => {
          const list = state[name], rows = list.rows || list;
          return table(name, title, columns, rows, list.more || 0, list.refusal);
        }));
        $('change').hidden = !state.allowsChanges;
        before = next;
      };
      const change = action => act({action, channel: $('name').value, value: $('value').value});
      $('change').onsubmit = e => { e.preventDefault(); change('put'); };
      $('clear').onclick = () => change('clear');

      """)
}
