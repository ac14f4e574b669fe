#if FAULT_POINTS
  import WormholeHubProtocol
  import WormholeSyscalls

  /// The connection of a bridge to a ``ScheduledHub``.
  final class HubClient: HubConnection {
    let key: UInt64
    private(set) var session = HubSession()
    private(set) var isClosed = false
    private let socket: Descriptor
    private var outgoing: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    init(_ socket: consuming Descriptor, key: UInt64, in set: borrowing WaitSet) throws(Errno) {
      self.key = key
      self.socket = socket
      try set.add(self.socket, as: key)
    }

    /// Whether the kernel had no room for a part of the bytes.
    var isBehind: Bool { !outgoing.isEmpty }

    func send(_ bytes: [UInt8]) { outgoing += bytes }

    func close() { isClosed = true }

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
        session.append(buffer[..<count])
      }
    }

    func next() -> HubLine? { session.next() }
  }
#endif
