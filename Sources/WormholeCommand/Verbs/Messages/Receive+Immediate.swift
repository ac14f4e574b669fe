import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// `receive --immediate` and `receive --contexts`.
extension Invocation {
  /// Also writes immediate messages and contexts, for as long as the process runs.
  func hearMore(_ member: Member, _ telling: ItemOutput, _ writer: LineWriter) throws {
    if has(.hearImmediate) {
      _ = member.takeImmediate(kinds: value(.kind).map { [$0] }) { message in
        let heard = Heard(
          delivery: "immediate", from: message.from, kind: message.kind, headers: message.headers)
        return telling.tell {
          try hear(heard, writer) {
            () throws(WormholeError) -> PropertyListValue in try message.value()
          }
        }
      }
    }
    if has(.hearContexts) {
      _ = try member.watchContexts(
        on: nil,
        accepting: { context in
          let sent = DateText.format(context.sentAt)
          let heard = Heard(
            delivery: "context", from: context.from, kind: context.kind, sent: sent)
          return telling.tell {
            try hear(heard, writer) {
              () throws(WormholeError) -> PropertyListValue in try context.value()
            }
          }
        })
    }
  }

  /// Returns 0 if the message was handled; an immediate message or context is not redelivered.
  ///
  /// - Parameter content: returns the value; an error that may pass is thrown again, and any other
  ///   error is reported, because no later read finds a value either.
  private func hear(
    _ heard: Heard, _ writer: LineWriter,
    _ content: () throws(WormholeError) -> PropertyListValue
  ) throws -> Int32? {
    let isContext = heard.delivery == "context"
    let what = isContext ? "context" : "immediate message"
    func refuse(_ reason: String) -> Int32? {
      output.tell("\(what) '\(heard.kind)' is not handled and is not redelivered: \(reason)")
      return nil
    }
    let value: PropertyListValue
    do throws(WormholeError) {
      value = try content()
    } catch {
      if error.mayPass { throw error }
      return refuse(error.reason)
    }
    let written = WrittenLine(heard, value, to: receiver)
    guard let line = self.value(.exec) else {
      try has(.raw) ? output.write(try value.printed(raw: true)) : writer.write(written)
      return 0
    }
    var settings = [
      "WORMHOLE_MESSAGE_DELIVERY=\(heard.delivery)", "WORMHOLE_MESSAGE_ID=",
      "WORMHOLE_MESSAGE_BATCH_INDEX=", "WORMHOLE_MESSAGE_FROM=\(heard.from ?? "")",
      "WORMHOLE_MESSAGE_KIND=\(heard.kind)", "WORMHOLE_MESSAGE_ATTEMPT=1",
    ]
    settings += try Programs.settings(of: heard.headers)
    // A context whose program is missing was not received, and waits.
    let fate = isContext ? "waits for the next process that joins" : "is not redelivered"
    if let reason = try run(line, on: value, settings, missing: "the \(what) \(fate)") {
      return refuse(reason)
    }
    if writer.isChosen { try writer.write(written) }
    Interruption.endIfAsked()
    return 0
  }
}

/// An immediate message or a context that has arrived.
private struct Heard {
  let delivery: String
  let from: String?
  let kind: String
  var sent: String?
  var headers: [String: String] = [:]
}

extension WrittenLine {
  fileprivate init(_ heard: Heard, _ value: PropertyListValue, to name: String) {
    self.init(name, .received) {
      let headers = heard.headers.mapValues { PropertyListValue.string($0) }
      return [
        "delivery": .string(heard.delivery), "from": heard.from.map { .string($0) },
        "to": .string(name), "kind": .string(heard.kind),
        "headers": headers.isEmpty ? nil : .dictionary(headers),
        "sent": heard.sent.map { .string($0) }, "value": value,
      ]
    }
    plain = { try value.inOneLine() }
    (self.value, sender, kind) = (value, heard.from, heard.kind)
    headers = heard.headers
  }
}

extension Option {
  static let hearImmediate = Option("immediate", nil, "receive immediate messages too")
  static let hearContexts = Option("contexts", nil, "receive contexts too")
}
