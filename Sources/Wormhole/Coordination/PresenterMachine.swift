internal import WormholeContainerStorage

/// A pure state machine: one presenter, from its registration to its end.
///
/// The machine knows no container, file or queue. Each method returns the actions that follow, in
/// their order; ``PresentedFile`` performs them after it has released the lock.
///
/// The process that asked the presenter reports the end of its access. A dead process reports
/// nothing. So while the presenter has relinquished for any access, the machine asks for a look at
/// the processes of these accesses.
struct PresenterMachine<Reply, Resumption> {
  /// Where accesses find the presenter: in each container that orders some of its paths, and anew
  /// after each move.
  struct Registration: Hashable {
    /// The receiving guest.
    let guest: String
    /// The number of the presenter within its process.
    let number: Int
  }

  /// An access, under the registration at which it has found the presenter.
  struct PresenterAccess: Hashable {
    let registration: Registration
    let access: String
  }

  /// An access that may have written before the registration; if its process dies, no process
  /// notifies this presenter.
  struct AwaitedWriter: Hashable {
    let registration: Registration
    let name: AccessName
  }

  /// The closures that the program has set; the last is for a move of an item in the folder.
  enum Closure { case relinquish, save, delete, deleteBelow, didMove }

  /// A closure that reports its completion, and that an access waits for.
  enum Step: Hashable {
    case relinquish(Coordinator.Presenter.Use)
    case save, delete
    case deleteBelow(String)
  }

  enum Action {
    /// Call the closure on the presenter's queue, unless ``skips(_:for:)`` says otherwise by then.
    case call(Step, PresenterAccess)
    /// Reply with whether the presenter needs a notice when the access is over.
    case answer(Reply, holdsOff: Bool)
    case resume(Resumption)
    /// Call the closure on the presenter's queue with the result of ``takeChange(_:)``.
    case report(AccessPath)
    case reportMove(Coordinator.Presenter.Move)
    /// Register the presenter at its paths; the ends of the known accesses need no waiting.
    case register(known: Set<String>)
    /// Let no further access find these registrations.
    case hide([Registration])
    /// Receive nothing more for these registrations.
    case forget([Registration])
    /// Look at the processes in a second.
    case lookLater
  }

  fileprivate struct Hold {
    /// The name of the access's process.
    let process: String
    let writes: Bool
    /// Nil until the presenter has relinquished, and if it passed no closure to `goOn`.
    var resume: Resumption?
  }

  fileprivate struct PendingReply {
    let reply: Reply
    /// The steps not begun.
    var steps: ArraySlice<Step>
  }

  private let closures: Set<Closure>
  /// The path from the caller, without links on the way to it; if the path is a link, also its
  /// target.
  private(set) var paths: [AccessPath] = []
  private var shown: [Registration] = []
  /// The registrations from before a move, for accesses that asked there and have not ended.
  private var left: [Registration] = []
  /// Whether the last registration has failed.
  private(set) var isLate = false
  private(set) var isStopped = false
  private var holds: [PresenterAccess: Hold] = [:]
  /// The pending replies.
  ///
  /// Requests of accesses that have ended are kept too: until the reply arrives, the requesting
  /// process does not wait for this presenter again.
  private var pending: [PresenterAccess: PendingReply] = [:]
  /// The last accesses that have ended before their request arrived.
  ///
  /// The file of a request stays unread while the system refuses to remove it, and the notice of
  /// the end overtakes it.
  private var endedUnasked: [PresenterAccess] = []
  private(set) var awaited: Set<AwaitedWriter> = []
  /// The changes still to report, by path; a call for each is queued already.
  private var changes: [AccessPath: Bool] = [:]
  /// The number of changes that are reported separately.
  private let mostChanges: Int
  private let mostUnasked: Int

  init(_ closures: Set<Closure>, mostChanges: Int = 1000, mostUnasked: Int = 100) {
    self.closures = closures
    (self.mostChanges, self.mostUnasked) = (mostChanges, mostUnasked)
  }

  // MARK: Registration

  /// Takes the presented paths, before any access can find the presenter.
  mutating func begin(at paths: [AccessPath]) { self.paths = paths }

  /// The presenter is registered at its paths, and could be found before.
  ///
  /// - Parameter writers: the accesses that may have written before.
  mutating func registered(
    _ new: [Registration], writers: Set<AwaitedWriter> = []
  ) -> [Action] {
    guard !isStopped else { return [.hide(new), .forget(new)] }
    // Both places have the presenter until now: no moment has none.
    var actions: [Action] = [.hide(shown)]
    let over = left.filter { !isInUse($0) }
    left = left.filter(isInUse) + shown
    shown = new
    awaited.formUnion(writers)
    actions.append(.forget(over))
    if !writers.isEmpty { actions.append(.lookLater) }
    // Writers at the new path before the registration have not notified this presenter.
    if isLate { actions += change(at: nil) }
    isLate = false
    return actions
  }

  private func isInUse(_ one: Registration) -> Bool {
    holds.keys.contains { $0.registration == one }
      || pending.keys.contains { $0.registration == one }
      || awaited.contains { $0.registration == one }
  }

  /// The registration has failed: until the next attempt succeeds, no access asks the presenter at
  /// its new path.
  ///
  /// - Parameter new: the registrations that were made before the failure; accesses may have asked
  ///   there.
  mutating func registrationFailed(after new: [Registration]) -> [Action] {
    guard !isStopped else { return [.hide(new), .forget(new)] }
    isLate = true
    left += new
    return [.hide(new), .lookLater]
  }

  /// Follows a move of the presented item, and reports it; also reports the move of an item in the
  /// presented folder.
  mutating func move(_ move: PresenterMove) -> [Action] {
    // The sender may be another user.
    guard !isStopped, let from = AccessPath(plain: move.from), let to = AccessPath(plain: move.to)
    else { return [] }
    if let old = paths.first, let new = old.moved(from: from, to: to) {
      paths = paths.map { $0.moved(from: from, to: to) ?? $0 }
      let register = Action.register(known: Set(move.inside))
      guard move.tells else { return [register] }
      let report = Coordinator.Presenter.Move(
        from: old.text, to: new.text, oldRelativePath: nil, newRelativePath: nil)
      // Another access may have written at the new path before this presenter was registered there.
      return [register, .reportMove(report)] + change(at: nil)
    }
    guard move.tells else { return [] }
    if closures.contains(.didMove), let old = below(from) {
      return [
        .reportMove(
          .init(from: from.text, to: to.text, oldRelativePath: old, newRelativePath: below(to)))
      ]
    }
    return change(at: from) + (below(to) == nil ? [] : change(at: to, isNew: true))
  }

  /// Ends the presenter: every pending request is replied to, and nothing is reported any more.
  mutating func end() -> [Action] {
    let answers = pending.values.map { Action.answer($0.reply, holdsOff: false) }
    let all = [Action.hide(shown), .forget(shown + left)]
    self = PresenterMachine(closures, mostChanges: mostChanges)
    isStopped = true
    return all + (Mutants.has(.forgetReplies) ? [] : answers)
  }

  // MARK: Before an access

  mutating func ask(
    _ question: PresenterQuestion, as guest: String, _ reply: Reply
  ) -> [Action] {
    guard !isStopped else { return [.answer(reply, holdsOff: false)] }
    let access = PresenterAccess(
      registration: Registration(guest: guest, number: question.presenter),
      access: question.access)
    if let index = endedUnasked.firstIndex(of: access) {
      endedUnasked.remove(at: index)
      return [.answer(reply, holdsOff: false)]
    }
    holds[access] = Hold(process: question.process, writes: question.writes == true)
    pending[access] = PendingReply(reply: reply, steps: steps(before: question)[...])
    return [.lookLater] + proceed(access)
  }

  private func steps(before question: PresenterQuestion) -> [Step] {
    let isDeleted = question.deletes == true
    var steps: [Step] = []
    if closures.contains(.relinquish) {
      steps.append(.relinquish(question.writes == true ? .writing : .reading))
    }
    if isDeleted, closures.contains(.delete) {
      steps.append(.delete)
    } else if question.saves == true, closures.contains(.save) {
      steps.append(.save)
    }
    if !isDeleted, closures.contains(.deleteBelow) {
      steps += (question.deleted ?? []).compactMap { below(AccessPath($0)) }.map(Step.deleteBelow)
    }
    return steps
  }

  /// Begins the next step for an access.
  private mutating func proceed(_ access: PresenterAccess) -> [Action] {
    if let step = pending[access]?.steps.popFirst() { return [.call(step, access)] }
    let hold = holds[access]
    // The end of a reader does not matter if no closure has to be called, even if the reader dies.
    let holdsOff = hold.map { $0.writes || $0.resume != nil } ?? false
    if !holdsOff { holds[access] = nil }
    let reply = pending.removeValue(forKey: access)?.reply
    return reply.map { [.answer($0, holdsOff: holdsOff)] } ?? []
  }

  /// The presenter's queue is about to call the closure of a step.
  ///
  /// - Returns: nil to call the closure; the actions in place of the call if the access is over: no
  ///   process waits for the remaining steps. A presenter relinquishes all the same, and resumes at
  ///   once.
  mutating func skips(_ step: Step, for access: PresenterAccess) -> [Action]? {
    if case .relinquish = step { return nil }
    guard holds[access] == nil else { return nil }
    pending[access]?.steps = []
    return proceed(access)
  }

  /// The closure of a step has reported its completion.
  ///
  /// - Parameter resume: for a presenter that has relinquished, the closure to call when the access
  ///   is over.
  mutating func completed(_ access: PresenterAccess, resume: Resumption?) -> [Action] {
    var late: [Action] = []
    if let resume {
      if holds[access] != nil {
        holds[access]?.resume = resume
      } else if !isStopped, !Mutants.has(.dropLateResume) {
        late = [.resume(resume)]
      }
    }
    return late + proceed(access)
  }

  // MARK: After an access

  mutating func tell(_ news: PresenterNews, as guest: String) -> [Action] {
    let made = Set(news.made.map(AccessPath.init(_:)))
    let registration = Registration(guest: guest, number: news.presenter)
    let access = PresenterAccess(registration: registration, access: news.access)
    if holds[access] == nil, pending[access] == nil { noteUnasked(access) }
    var actions = end(of: access)
    for path in news.changed.map(AccessPath.init(_:)) {
      actions += change(at: path, isNew: made.contains(path))
    }
    return actions
  }

  /// Notes the end of an access whose request has not arrived, and that may never have asked.
  private mutating func noteUnasked(_ access: PresenterAccess) {
    guard !isStopped, !access.access.isEmpty, !endedUnasked.contains(access) else { return }
    if endedUnasked.count == mostUnasked { endedUnasked.removeFirst() }
    endedUnasked.append(access)
  }

  private mutating func end(of access: PresenterAccess) -> [Action] {
    let hold = holds.removeValue(forKey: access)
    return hold?.resume.map { [.resume($0)] } ?? []
  }

  /// - Parameter path: nil for the presented item.
  private mutating func change(at path: AccessPath?, isNew: Bool = false) -> [Action] {
    guard !isStopped else { return [] }
    // Above the limit, report one change of the presented item itself.
    let own = changes.count < mostChanges ? path : nil
    guard let path = own ?? paths.last ?? path else { return [] }
    let before = changes.updateValue(isNew, forKey: path)
    if before == true { changes[path] = true }
    return before == nil ? [.report(path)] : []
  }

  /// Returns a change to report; nil after the end.
  mutating func takeChange(_ path: AccessPath) -> Coordinator.Presenter.Change? {
    changes.removeValue(forKey: path).map { isNew in
      .init(path: path.text, isNew: isNew, relativePath: below(path))
    }
  }

  private func below(_ path: AccessPath) -> String? {
    // The target of a presented link may be a folder that contains the link.
    paths.contains(path) ? nil : paths.last { $0.isAtOrAbove(path) }?.way(to: path)
  }

  // MARK: Dead processes

  /// The accesses that the presenter has relinquished for, each with its process.
  var held: [PresenterAccess: String] { holds.mapValues(\.process) }

  /// Whether some of these accesses and writers have ended without a notice was looked at.
  mutating func looked(lost: [PresenterAccess], ended: Set<AwaitedWriter>) -> [Action] {
    var actions: [Action] = []
    for access in lost {
      guard let hold = holds[access] else { continue }
      actions += end(of: access)
      if hold.writes { actions += change(at: nil) }
    }
    if !ended.isEmpty { actions += change(at: nil) }
    awaited.subtract(ended)
    if !(holds.isEmpty && awaited.isEmpty) { actions.append(.lookLater) }
    return actions
  }
}

extension PresenterMachine: Equatable where Reply: Equatable, Resumption: Equatable {}
extension PresenterMachine.Hold: Equatable where Resumption: Equatable {}
extension PresenterMachine.PendingReply: Equatable where Reply: Equatable {}
extension PresenterMachine: Hashable where Reply: Hashable, Resumption: Hashable {}
extension PresenterMachine.Hold: Hashable where Resumption: Hashable {}
extension PresenterMachine.PendingReply: Hashable where Reply: Hashable {}
