#if FAULT_POINTS
  import WormholeSyscalls

  /// The connection of a bridge to a ``ScheduledHub``.
  final class HubClient {
    struct Message {
      let subject: String
      let reply: String?
      /// The lines of the headers, without the first one.
      let headers: String
      let payload: [UInt8]

      func header(_ name: String) -> String? {
        headers.split(separator: "\r\n").first { $0.hasPrefix(name + ": ") }
          .map { String($0.dropFirst(name.utf8.count + 2)) }
      }
    }

    enum Line {
      case ping
      case subscribe(String, id: String)
      case unsubscribe(id: String)
      case publish(Message)
      case other
    }

    let key: UInt64
    var subscriptions: [(subject: String, id: String)] = []
    private(set) var isClosed = false
    private let socket: Descriptor
    private var (arrived, outgoing): ([UInt8], [UInt8]) = ([], [])
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    init(_ socket: consuming Descriptor, key: UInt64, in set: borrowing WaitSet) throws(Errno) {
      self.key = key
      self.socket = socket
      try set.add(self.socket, as: key)
    }

    /// Whether the kernel had no room for a part of the bytes.
    var isBehind: Bool { !outgoing.isEmpty }

    func send(_ bytes: [UInt8]) { outgoing += bytes }

    func flush() {
      guard !isClosed, !outgoing.isEmpty else { return }
      do throws(Errno) {
        outgoing.removeFirst(try socket.send(outgoing) ?? 0)
      } catch {
        isClosed = true
      }
    }

    /// Reads the bytes that have arrived.
    func read() {
      var count = buffer.count
      while !isClosed, count == buffer.count {
        do throws(Errno) {
          guard let next = try socket.receive(into: &buffer) else { return }
          count = next
        } catch {
          count = 0
        }
        isClosed = count == 0
        arrived += buffer[..<count]
      }
    }

    /// Takes the next complete line, with its body.
    func next() -> Line? {
      guard let end = arrived.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      let words = String(decoding: arrived[..<end], as: UTF8.self)
        .split { $0 == " " || $0.isNewline }.map(String.init)
      let verb = words.first ?? ""
      guard verb == "PUB" || verb == "HPUB" else {
        arrived.removeFirst(end + 1)
        switch verb {
        case "PING": return .ping
        case "SUB": return .subscribe(words[1], id: words[words.count - 1])
        case "UNSUB": return .unsubscribe(id: words[1])
        default: return .other
        }
      }
      let size = Int(words[words.count - 1]) ?? 0
      guard arrived.count >= end + 1 + size + 2 else { return nil }
      let isPlain = verb == "PUB"
      let headerSize = isPlain ? 0 : Int(words[words.count - 2]) ?? 0
      let body = arrived[(end + 1)..<(end + 1 + size)]
      let headers = String(decoding: body.prefix(headerSize), as: UTF8.self)
        .split(separator: "\r\n").dropFirst()
      let message = Message(
        subject: words[1], reply: words.count > (isPlain ? 3 : 4) ? words[2] : nil,
        headers: headers.map { $0 + "\r\n" }.joined(),
        payload: Array(body.dropFirst(headerSize)))
      arrived.removeFirst(end + 1 + size + 2)
      return .publish(message)
    }
  }
#endif
