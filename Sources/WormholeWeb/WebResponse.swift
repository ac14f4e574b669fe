/// A reply with a body of known length.
package struct WebResponse: Sendable {
  package let status: Int
  package let type: String
  package let body: [UInt8]
  /// The nonce of the page's own script and style; nil for all other replies.
  private var nonce: String?

  package init(_ status: Int, _ type: String, _ body: [UInt8]) {
    self.status = status
    self.type = type
    self.body = body
  }

  package init(_ refusal: WebRefusal) {
    self.init(refusal.status, "text/plain; charset=utf-8", Array("\(refusal.reason)\n".utf8))
  }

  package init(json text: String, status: Int = 200) {
    self.init(status, "application/json; charset=utf-8", Array(text.utf8))
  }

  package init(_ page: WebPage) {
    let nonce = WebGuard.randomToken()
    self.init(200, "text/html; charset=utf-8", Array(page.text(nonce).utf8))
    self.nonce = nonce
  }

  /// The head of the reply: it lets no other site load, frame or read the content, and no script
  /// but the page's own run in it.
  func head(staysOpen: Bool) -> [UInt8] {
    Self.head(
      status, type, nonce,
      ["Content-Length: \(body.count)", "Connection: \(staysOpen ? "keep-alive" : "close")"])
  }

  /// The head of a stream of events, which ends with its connection.
  static let streamHead = head(200, "text/event-stream", nil, ["Connection: close"])

  private static func head(
    _ status: Int, _ type: String, _ nonce: String?, _ more: [String]
  ) -> [UInt8] {
    let own = nonce.map {
      "script-src 'nonce-\($0)'; style-src 'nonce-\($0)'; connect-src 'self'; img-src data:; "
    }
    let lines =
      [
        "HTTP/1.1 \(status) \(reasons[status] ?? "Refused")", "Content-Type: \(type)",
        "Content-Security-Policy: default-src 'none'; \(own ?? "")base-uri 'none'; "
          + "form-action 'none'; frame-ancestors 'none'",
        "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer", "Cross-Origin-Resource-Policy: same-origin",
      ] + more
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  private static let reasons = [
    200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 409: "Conflict", 411: "Length Required", 413: "Content Too Large",
    421: "Misdirected Request", 431: "Header Fields Too Large", 501: "Not Implemented",
    503: "Service Unavailable", 505: "Version Not Supported",
  ]
}

/// A page of one file: without a framework, and without anything that another address holds.
package struct WebPage: Sendable {
  let title: String
  let style: String
  let body: String
  let script: String

  package init(title: String, style: String, body: String, script: String) {
    self.title = title
    self.style = style
    self.body = body
    self.script = script
  }

  func text(_ nonce: String) -> String {
    """
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>\(title)</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <link rel="icon" href="data:,">
    <style nonce="\(nonce)">\(style)</style></head>
    <body>\(body)<script nonce="\(nonce)">(() => {
    \(Self.link)\(script)})();</script></body></html>

    """
  }

  /// The part of each page that receives the documents, and calls `show` with each.
  ///
  /// A browser opens six connections to a host. So at most four pages of a browser have a stream,
  /// which they agree on by the browser's locks; a hidden page has none. A page without a stream
  /// asks every two seconds instead, and so does a page whose stream does not begin within two
  /// seconds, because other programs of the host use the same connections.
  private static let link = """
    'use strict';
    const $ = id => document.getElementById(id);
    const make = (name, text, kind) => {
      const made = document.createElement(name);
      if (text !== undefined) made.textContent = text;
      if (kind) made.className = kind;
      return made;
    };
    let stream = null, timer = 0, turn = 0, free = () => {};
    const status = (text, ok) => {
      $('status').textContent = (ok ? '● ' : '○ ') + text;
      document.body.dataset.way = ok ? text : '';
    };
    const ask = () => fetch('state').then(r => r.ok ? r.json() : Promise.reject(r.status))
      .then(d => { status('asks every two seconds', true); show(d); })
      .catch(e => status('no reply: ' + e, false));
    const poll = () => {
      close(); ask(); timer = setInterval(ask, 2000);
    };
    const close = () => {
      clearInterval(timer); clearTimeout(timer);
      if (stream) stream.close();
      stream = null; free(); free = () => {};
    };
    const listen = () => {
      timer = setTimeout(poll, 2000);
      stream = new EventSource('events');
      stream.onopen = () => clearTimeout(timer);
      stream.onmessage = e => { status('live', true); show(JSON.parse(e.data)); };
      stream.onerror = () => {
        const refused = stream.readyState === 2;
        status('the connection is lost', false);
        if (refused) poll();
      };
    };
    const slot = (n, own) => !navigator.locks ? listen() : n > 4 ? poll()
      : navigator.locks.request('wormhole-stream-' + n, {ifAvailable: true}, lock => {
        // The page may have been hidden, or shown again, in the meantime.
        if (document.hidden || own !== turn) return;
        if (!lock) { slot(n + 1, own); return; }
        listen();
        return new Promise(resolve => { free = resolve; });
      });
    const start = () => { close(); if (!document.hidden) slot(1, ++turn); };
    document.addEventListener('visibilitychange', start);
    const act = request => fetch('do', {
      method: 'POST', body: JSON.stringify(request),
      headers: {'X-Wormhole-Token': location.pathname.split('/')[1]},
    }).then(r => r.text()).then(t => { $('answer').textContent = t; })
      .catch(e => { $('answer').textContent = 'not sent: ' + e; });
    addEventListener('DOMContentLoaded', start);

    """
}
