import WormholeWeb

extension WebPage {
  /// The page of `cinematime serve`.
  static let cinema = WebPage(
    title: "CinemaTime",
    style: """
      body { margin: 0; font: 15px/1.4 system-ui, sans-serif; background: #14161c; color: #f2f2f2 }
      header, footer { padding: .8rem 1.2rem; display: flex; gap: 1rem; flex-wrap: wrap;
        align-items: baseline } h1 { font-size: 1.2rem; margin: 0 }
      #sides { display: flex; gap: 2rem; padding: 1rem; justify-content: center; flex-wrap: wrap;
        align-items: flex-start } .device { border: 10px solid #3a3e4a; background: #000;
        border-radius: 2.4rem; padding: 1rem; width: 25rem; box-sizing: border-box }
      .device.watch { width: 17rem; border-radius: 3.4rem; font-size: .85rem }
      .device.ended .screen, .device.stopped .screen { filter: grayscale(1) opacity(.65) }
      .films { height: 30rem; overflow-y: auto } .watch .films { height: 21rem }
      .card { border-radius: .8rem; padding: .8rem; margin: .6rem 0; color: #fff;
        text-shadow: 0 1px 2px #000 } .card h3 { margin: 0; font: 700 1.35em/1.1 Georgia, serif }
      .card p { margin: .2rem 0 } .card svg { width: 9rem; height: 9rem; background: #fff;
        display: block; border-radius: .4rem; margin: .4rem 0 }
      .watch .card svg { width: 7rem; height: 7rem } .controls { display: flex; gap: .4rem;
        flex-wrap: wrap; align-items: baseline; margin-bottom: .6rem }
      h2 { margin: 0; font-size: 1rem } button { font: inherit; color: #000; background: #ffd54a;
        border: 0; border-radius: .5rem; padding: .35rem .8rem; cursor: pointer }
      button:disabled { background: #8a8a8a; cursor: default }
      :focus-visible { outline: 3px solid #7fb4ff; outline-offset: 2px }

      """,
    body: """
      <header><h1>CinemaTime</h1><span id="books"></span><strong id="lag"></strong>
      <span id="status" role="status">○ connecting</span></header>
      <main id="sides"></main><svg id="svg" hidden></svg>
      <footer><span id="answer" role="status"></span></footer>

      """,
    script: """
      const signs = {running: '▶ runs', stopped: '‖ stopped', ended: '■ ended'};
      const draw = (name, values) => {
        const made = document.createElementNS($('svg').namespaceURI, name);
        for (const key in values) made.setAttribute(key, values[key]);
        return made;
      };
      const button = (text, id, label, enabled, request) => {
        const made = make('button', text);
        made.id = id;
        made.disabled = !enabled;
        made.setAttribute('aria-label', label);
        made.onclick = () => act(request);
        return made;
      };
      const card = (side, movie) => {
        const box = make('article', undefined, 'card'), hue = movie.id * 47 % 360;
        const ticket = side.tickets.find(t => t.movie === movie.id);
        const left = side.left[movie.id], runs = side.state === 'running';
        box.style.background = 'linear-gradient(135deg, hsl(' + hue + ' 60% 26%), hsl('
          + (hue + 60) + ' 60% 14%))';
        box.append(make('h3', movie.title), make('p', movie.time + ', by ' + movie.director));
        if (side.role === 'phone') box.append(make('p', movie.actors));
        const order = (action, text) => button(text, side.role + '-' + action + '-' + movie.id,
          text + ' on the ' + side.role + ': ' + movie.title, runs && (ticket || left !== 0),
          {action, side: side.role, movie: movie.id});
        if (!ticket) {
          box.append(make('p', left === undefined ? '' : left ? left + ' seats left' : 'Sold out'),
            order('buy', 'Buy'));
          return box;
        }
        const size = ticket.side + 8;
        const code = draw('svg', {viewBox: '0 0 ' + size + ' ' + size, role: 'img',
          'aria-label': 'QR code of ticket ' + ticket.id});
        code.append(draw('path', {d: ticket.code, fill: '#000'}));
        box.append(code, make('p', 'Ticket ' + ticket.id), order('return', 'Return'));
        box.dataset.ticket = ticket.id;
        return box;
      };
      const device = (side, movies) => {
        const box = make('section', undefined, 'device ' + side.role + ' ' + side.state);
        const controls = make('div', undefined, 'controls'), name = 'The ' + side.role;
        const heading = make('h2', side.role === 'phone' ? 'Phone' : 'Watch');
        const control = (action, text, enabled) => controls.append(button(text,
          side.role + '-' + action, text + ' the ' + side.role, enabled,
          {action, side: side.role}));
        heading.id = side.role + '-name';
        box.id = side.role;
        box.setAttribute('aria-labelledby', heading.id);
        controls.append(heading, make('span', signs[side.state]
          + (side.process ? ', process ' + side.process : '')));
        control('stop', 'Stop', side.state === 'running');
        control('kill', 'Kill', side.state !== 'ended');
        control('start', 'Start', side.state !== 'running');
        const screen = make('div', undefined, 'screen'), films = make('div', undefined, 'films');
        const owned = m => side.tickets.some(t => t.movie === m.id) ? 0 : 1;
        films.append(...[...movies].sort((a, b) => owned(a) - owned(b))
          .map(movie => card(side, movie)));
        films.id = side.role + '-films';
        films.tabIndex = 0;
        films.setAttribute('aria-label', 'Films and tickets of the ' + side.role);
        const message = make('p', side.message);
        message.setAttribute('role', 'status');
        screen.append(films, message);
        box.append(controls, screen);
        return box;
      };
      const show = state => {
        if (!state.sides) return;
        const focused = document.activeElement && document.activeElement.id;
        const places = state.sides.map(s => ($(s.role + '-films') || {}).scrollTop || 0);
        $('sides').replaceChildren(...state.sides.map(s => device(s, state.movies)));
        state.sides.forEach((s, n) => { $(s.role + '-films').scrollTop = places[n]; });
        if (focused && $(focused)) $(focused).focus({preventScroll: true});
        const b = state.books;
        $('books').textContent = !b.readable ? '✗ the books cannot be read'
          : b.sold + ' sold − ' + b.returned + ' returned = ' + b.valid
            + ' valid: ' + (b.addUp ? '✓ the books add up' : '✗ the books do not add up');
        $('lag').textContent = state.lag;
      };

      """)
}
