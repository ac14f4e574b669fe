internal import WormholePropertyLists
internal import Wormhole

/// What a machine has received of a flow, in `cursor.plist`.
///
/// One rename makes this machine responsible for everything up to the number.
struct FlowCursor: Equatable {
  /// Something that is done after the cursor is written, and may be done again.
  enum Step: Hashable {
    /// Gives a staged message its name in the receiver's inbox.
    case deliver(number: Int, to: Carrier.Resident, as: MessageName)
    case cancel(to: Carrier.Resident, MessageName)
    /// Gives a staged message its file, before the message is delivered.
    case attach(file: String, number: Int, to: Carrier.Resident, as: MessageName)
    /// Removes the pieces of a message that is delivered, or never will be.
    case remove(file: String)
    /// Replaces the sender's waiting context by the staged context.
    case context(number: Int, to: String, MessageName)
    /// Gives a staged message to the workers of a queue whose home is the other machine.
    case lend(number: Int, to: String, as: MessageName, FlowJob)
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
    static let (context, queue) = ("context", "queue")
  }

  init(flow: String) {
    (self.flow, generation, number, chain, steps) = (flow, 0, 0, .start, [])
  }

  var propertyList: PropertyListValue {
    func list(_ receiver: Carrier.Resident, _ name: MessageName) -> [String: PropertyListValue] {
      var list: [String: PropertyListValue] = [
        Key.receiver: .string(receiver.name), Key.name: .string(name.text),
      ]
      if case .queue = receiver { list[Key.queue] = true }
      return list
    }
    let steps = steps.map { step -> PropertyListValue in
      switch step {
      case .deliver(let number, let receiver, let name):
        return .dictionary(
          list(receiver, name).merging([Key.staged: .integer(Int64(number))]) { own, _ in own })
      case .cancel(let receiver, let name): return .dictionary(list(receiver, name))
      case .lend(let number, let queue, let name, let job):
        var list = list(.queue(queue), name).merging(job.propertyList) { own, _ in own }
        list[Key.staged] = .integer(Int64(number))
        return .dictionary(list)
      case .attach(let file, let number, let receiver, let name):
        var list = list(receiver, name)
        (list[Key.file], list[Key.staged]) = (.string(file), .integer(Int64(number)))
        return .dictionary(list)
      case .remove(let file): return [Key.file: .string(file)]
      case .context(let number, let receiver, let name):
        return [
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
        return number > 0 ? .context(number: number, to: receiver, name) : nil
      }
      let isQueue = step[Key.queue]?.boolValue ?? false
      let resident = isQueue ? Carrier.Resident.queue(receiver) : .member(receiver)
      guard let number = step[Key.staged]?.intValue else { return .cancel(to: resident, name) }
      guard number > 0 else { return nil }
      if let job = FlowJob(step) { return .lend(number: number, to: receiver, as: name, job) }
      return file.map { .attach(file: $0, number: number, to: resident, as: name) }
        ?? .deliver(number: number, to: resident, as: name)
    }
    guard self.steps.count == steps.count else { return nil }
  }
}
