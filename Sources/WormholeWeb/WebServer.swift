package import WormholeSyscalls

/// A server of HTTP/1.1 for a few pages on one machine, driven by one thread.
///
/// The thread in ``run()`` waits for all connections with one call of poll, and no connection can
/// make it wait. The server shows one document: ``publish(_:)`` replaces it from any thread, and
/// each stream of events gets the newest one as soon as it has taken the one before. A slow stream
/// skips documents, so that a document is stored once, whatever the number of clients.
///
/// The bounds are in ``WebLimits``. If all connections are taken, the one that has waited longest
/// for its request is closed: clients that send nothing can hold up nobody.
package final class WebServer: Sendable {
  /// Called on the server's thread for each request, with the means to reply now or later.
  package typealias Handler = @Sendable (WebRequest, WebReply) -> Void

  let listener: PortListener
  let wake: WakeDescriptor
  let limits: WebLimits
  private let mail = Monitor(Mail())

  /// What other threads have for the server's thread.
  struct Mail {
    var document: WebDocument?
    var replies: [(client: Int, action: WebAction)] = []
    var isStopped = false
    /// The number of streams, and the latest request for the document.
    var streams = 0
    var asked: Instant?
    var onLook: Action?
  }

  package init(_ address: WebAddress, _ limits: WebLimits = WebLimits()) throws(Errno) {
    listener = try PortListener(address: address.host, port: address.port)
    wake = try WakeDescriptor()
    self.limits = limits
  }

  package var port: UInt16 { listener.port }

  /// Serves on the calling thread, until ``stop()``.
  package func run(_ handler: @escaping Handler) throws(Errno) {
    var loop = WebLoop(self, handler)
    while try loop.step() {}
  }

  package func stop() { post { $0.isStopped = true } }

  /// Replaces the document: one line of JSON.
  package func publish(_ text: String) {
    post { $0.document = WebDocument(number: ($0.document?.number ?? 0) + 1, text) }
  }

  /// Whether a page has received, or asked for, the document within the last seconds.
  package var isWatched: Bool {
    mail.withLock { mail in
      mail.streams > 0 || mail.asked.map { Instant.now - $0 < .seconds(5) } ?? false
    }
  }

  /// Sets a closure that is called when a page begins to look.
  package func onLook(_ body: @escaping @Sendable () -> Void) {
    mail.withLock { $0.onLook = Action(body) }
  }

  /// Notes that a page was loaded, and will ask for the document.
  package func isLookedAt() { noteLook() }

  func noteLook(streams: Int? = nil) {
    let onLook = mail.withLock { mail in
      mail.asked = .now
      mail.streams = streams ?? mail.streams
      return mail.onLook
    }
    onLook?.perform()
  }

  func note(streams: Int) { mail.withLock { $0.streams = streams } }

  func post(_ body: (inout Mail) -> Void) {
    mail.withLock { body(&$0) }
    wake.raise()
  }

  func takeMail() -> Mail {
    mail.withLock { mail in
      let taken = mail
      mail.replies = []
      return taken
    }
  }
}

/// The document as the streams send it.
struct WebDocument: Sendable {
  let number: Int
  let text: String
  let event: [UInt8]

  init(number: Int, _ text: String) {
    (self.number, self.text) = (number, text)
    event = Array("data: \(text)\n\n".utf8)
  }
}

enum WebAction: Sendable {
  case respond(WebResponse)
  case document, stream
}

/// The means to reply to one request, once, from any thread.
package struct WebReply: Sendable {
  let server: WebServer
  let client: Int

  package func send(_ response: WebResponse) { post(.respond(response)) }

  /// Replies with the document as it is.
  package func sendDocument() { post(.document) }

  /// Begins a stream with the document, and each document after it.
  package func stream() { post(.stream) }

  private func post(_ action: WebAction) { server.post { $0.replies.append((client, action)) } }
}
