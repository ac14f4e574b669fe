package import Wormhole

/// The rights that a machine needs, as lines of the configuration of the servers.
///
/// The article *Between machines*, the command `bridge rights` and the check of the rights at a
/// bridge's start have this list as their source.
package struct MachineRights: Sendable {
  package enum Action: String, Sendable { case publish, subscribe }

  package struct Right: Hashable, Sendable {
    package let action: Action
    package let subject: String
    /// What the machine cannot do without the right.
    package let purpose: String
  }

  package let rights: [Right]

  package init(
    machine: String, group: String, domain: String = "hub"
  ) throws(WormholeError) {
    let group = try Subjects.part(group)
    let api = "$JS.\(domain).API"
    func publish(_ subject: String, _ purpose: String) -> Right {
      Right(action: .publish, subject: subject, purpose: purpose)
    }
    func subscribe(_ subject: String, _ purpose: String) -> Right {
      Right(action: .subscribe, subject: subject, purpose: purpose)
    }
    rights = [
      publish("whf.*.*.\(group).\(machine)", "send messages"),
      publish("whf.*.\(machine)", "send messages through a leaf"),
      publish("whs.*.\(group).x.\(machine)", "record the starts of its bridge"),
      publish("whs.*.\(group).m.*", "record the homes of members"),
      publish("whs.*.\(group).h.*", "record the homes of channels"),
      publish("whs.*.\(group).v.*", "publish the contents of channels"),
      publish("whb.\(group).\(machine)", "send heartbeats"),
      publish("whm.*.*.\(machine)", "confirm, and ask other machines"),
      publish("_INBOX.>", "reply to other machines"),
      publish(
        "\(api).DIRECT.GET.WHS_0.\(Deployment.subject)", "read how the servers are set up"),
      publish(
        "\(api).DIRECT.GET.*.whf.*.*.\(group).\(machine)", "read the last bundle of its flows"),
      publish("\(api).CONSUMER.CREATE.*.*.whf.*.\(machine).\(group).*", "receive messages"),
      publish("\(api).CONSUMER.CREATE.*.*.whs.*.\(group).>", "read the records of the group"),
      publish("\(api).CONSUMER.MSG.NEXT.*.*", "receive messages and records"),
      publish("\(api).STREAM.INFO.*", "notice streams that were restored from a backup"),
      subscribe("_INBOX.\(machine).>", "receive replies"),
      subscribe("whm.\(machine).*.*", "receive confirmations and questions"),
      subscribe("whb.\(group).*", "receive heartbeats"),
    ]
  }

  /// The lines below `permissions` of the machine's user.
  package var lines: [String] {
    [Action.publish, .subscribe].flatMap { action in
      ["\(action.rawValue): ["]
        + rights.filter { $0.action == action }.map { "  \"\($0.subject)\"" } + ["]"]
    }
  }
}
