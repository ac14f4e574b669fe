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
    let name = value(.joinAs) ?? ""
    if has(.hearImmediate) {
      _ = member.takeImmediate(kinds: value(.kind).map { [$0] }) { message in
        telling.tell {
          let value = try read("immediate message", message.kind) {
            () throws(WormholeError) -> PropertyListValue in try message.value()
          }
          guard let value else { return nil }
          return try hear(
            Heard("immediate", message.from, message.kind, nil, value, message.headers),
            to: name, writer)
        }
      }
    }
    if has(.hearContexts) {
      _ = try member.watchContexts(
        on: nil,
        accepting: { context in
          telling.tell {
            let value = try read("context", context.kind) {
              () throws(WormholeError) -> PropertyListValue in try context.value()
            }
            guard let value else { return nil }
            return try hear(
              Heard("context", context.from, context.kind, context.sentAt, value), to: name, writer)
          }
        })
    }
  }

  /// Returns the value of an immediate message or a context; nil, with a report, if no later read
  /// finds a value either.
  private func read(
    _ what: String, _ kind: String,
    _ value: () throws(WormholeError) -> PropertyListValue
  ) throws(WormholeError) -> PropertyListValue? {
    do throws(WormholeError) {
      return try value()
    } catch {
      if error.mayPass { throw error }
      output.tell("\(what) '\(kind)' is not handled and is not redelivered: \(error.reason)")
      return nil
    }
  }

  /// Returns 0 if the message was handled; an immediate message or context is not redelivered.
  private func hear(_ heard: Heard, to name: String, _ writer: LineWriter) throws -> Int32? {
    guard let line = value(.exec) else {
      try has(.raw)
        ? output.write(try heard.value.printed(raw: true))
        : writer.write(WrittenLine(heard, to: name))
      return 0
    }
    var settings = [
      "WORMHOLE_MESSAGE_DELIVERY=\(heard.delivery)", "WORMHOLE_MESSAGE_ID=",
      "WORMHOLE_MESSAGE_BATCH_INDEX=", "WORMHOLE_MESSAGE_FROM=\(heard.from ?? "")",
      "WORMHOLE_MESSAGE_KIND=\(heard.kind)", "WORMHOLE_MESSAGE_ATTEMPT=1",
    ]
    settings += try Programs.settings(of: heard.headers)
    let isContext = heard.delivery == "context"
    let what = isContext ? "context" : "immediate message"
    // A context whose program is missing was not received, and waits.
    let fate = isContext ? "waits for the next process that joins" : "is not redelivered"
    if let reason = try run(line, on: heard.value, settings, missing: "the \(what) \(fate)") {
      output.tell("\(what) '\(heard.kind)' is not handled and is not redelivered: \(reason)")
      return nil
    }
    if writer.isChosen { try writer.write(WrittenLine(heard, to: name)) }
    Interruption.endIfAsked()
    return 0
  }
}

/// An immediate message or a context that has arrived.
private struct Heard {
  let delivery: String
  let from: String?
  let kind: String
  let sent: String?
  let value: PropertyListValue
  let headers: [String: String]

  init(
    _ delivery: String, _ from: String?, _ kind: String, _ sent: Date?, _ value: PropertyListValue,
    _ headers: [String: String] = [:]
  ) {
    self.delivery = delivery
    self.from = from
    self.kind = kind
    self.sent = sent.flatMap { DateText.format($0) }
    self.value = value
    self.headers = headers
  }
}

extension WrittenLine {
  fileprivate init(_ heard: Heard, to name: String) {
    self.init(name, .received) {
      let headers = heard.headers.mapValues { PropertyListValue.string($0) }
      return [
        "delivery": .string(heard.delivery), "from": heard.from.map { .string($0) },
        "to": .string(name), "kind": .string(heard.kind),
        "headers": headers.isEmpty ? nil : .dictionary(headers),
        "sent": heard.sent.map { .string($0) }, "value": heard.value,
      ]
    }
    plain = { try heard.value.inOneLine() }
    (value, sender, kind) = (heard.value, heard.from, heard.kind)
    headers = heard.headers
  }
}

extension Option {
  static let hearImmediate = Option("immediate", nil, "receive immediate messages too")
  static let hearContexts = Option("contexts", nil, "receive contexts too")
}
