internal import WormholePropertyLists
internal import Wormhole

/// What a machine has received of a flow, in `cursor.plist`.
///
/// One rename makes this machine responsible for everything up to the number.
struct FlowCursor: Equatable {
  /// Something that is done after the cursor is written, and may be done again.
  enum Step: Hashable {
    /// Gives a staged message its name in the receiver's inbox.
    case deliver(number: Int, to: String, as: MessageName)
    case cancel(to: String, MessageName)
    /// Gives a staged message its file, before the message is delivered.
    case attach(file: String, number: Int, to: String, as: MessageName)
    /// Removes the pieces of a message that is delivered, or never will be.
    case remove(file: String)
    /// Replaces the sender's waiting context by the staged context.
    case context(number: Int, to: String, MessageName)
  }

  var flow: String
  /// The latest start of the sending bridge that was seen.
  var generation: Int
  var number: Int
  var chain: EntryChain
  var steps: [Step]

  var position: FlowPosition { FlowPosition(flow: flow, number: number, chain: chain) }

  private enum Key {
    static let (flow, generation, number, hash) = ("flow", "generation", "number", "hash")
    static let (steps, receiver, name, staged) = ("placing", "to", "N", "n")
    static let file = "file"
    static let context = "context"
  }

  init(flow: String) {
    (self.flow, generation, number, chain, steps) = (flow, 0, 0, .start, [])
  }

  var propertyList: PropertyListValue {
    let steps = steps.map { step -> PropertyListValue in
      switch step {
      case .deliver(let number, let receiver, let name):
        [
          Key.staged: .integer(Int64(number)), Key.receiver: .string(receiver),
          Key.name: .string(name.text),
        ]
      case .cancel(let receiver, let name):
        [Key.receiver: .string(receiver), Key.name: .string(name.text)]
      case .attach(let file, let number, let receiver, let name):
        [
          Key.file: .string(file), Key.staged: .integer(Int64(number)),
          Key.receiver: .string(receiver), Key.name: .string(name.text),
        ]
      case .remove(let file): [Key.file: .string(file)]
      case .context(let number, let receiver, let name):
        [
          Key.context: .integer(Int64(number)), Key.receiver: .string(receiver),
          Key.name: .string(name.text),
        ]
      }
    }
    return [
      Key.flow: .string(flow), Key.generation: .integer(Int64(generation)),
      Key.number: .integer(Int64(number)), Key.hash: .string(chain.text),
      Key.steps: .array(steps),
    ]
  }

  init?(_ list: PropertyListValue) {
    guard let position = FlowPosition(list), let generation = list[Key.generation]?.intValue,
      let steps = list[Key.steps]?.arrayValue
    else { return nil }
    (flow, number, chain) = (position.flow, position.number, position.chain)
    self.generation = generation
    self.steps = steps.compactMap { step in
      let file = step[Key.file]?.stringValue
      if let file, step[Key.receiver] == nil { return .remove(file: file) }
      guard let receiver = step[Key.receiver]?.stringValue,
        let name = step[Key.name]?.stringValue.flatMap({ MessageName($0) })
      else { return nil }
      if let number = step[Key.context]?.intValue {
        return .context(number: number, to: receiver, name)
      }
      guard let number = step[Key.staged]?.intValue else { return .cancel(to: receiver, name) }
      return file.map { .attach(file: $0, number: number, to: receiver, as: name) }
        ?? .deliver(number: number, to: receiver, as: name)
    }
    guard self.steps.count == steps.count else { return nil }
  }
}
