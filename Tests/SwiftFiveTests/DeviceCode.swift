import AppGroups
import Foundation
import MMWormhole
import TestSupport
import Testing
import WatchConnectivity

/// Code with the declarations of the devices' headers, in the language mode of the target, and what
/// it does; a suite of each mode runs it.
struct DeviceCode {
  private let group: String

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  /// Runs a body on the main queue, as the code of an app is.
  private func onMain<Value: Sendable>(_ body: @MainActor () -> Value) -> Value {
    DispatchQueue.main.sync { MainActor.assumeIsolated { body() } }
  }

  /// This process has no role, so each message fails.
  func errorHandlersOfTheMainActorRunThere() throws {
    let heard = Heard<Bool>()
    let model = onMain {
      let model = LinkModel()
      model.didFail = {
        dispatchPrecondition(condition: .onQueue(.main))
        heard.add(true)
      }
      model.ask()
      model.communicate()
      return model
    }
    try heard.wait("the errors") { $0.count == 6 }
    #expect(onMain { model.errors.count } == 6)
  }

  func aDelegateUsesItselfInItsHandlers() throws {
    let (link, heard) = (PhoneLink(), Heard<Bool>())
    link.ask(completion: { _ in heard.add(false) }, failure: { _ in heard.add(true) })
    try heard.wait("the error") { $0 == [true] }
    link.transfer([1, 2]) { _ in }
    #expect(!link.drain())
  }

  func aListenerOfTheMainActorRunsThereWhateverTheQueue() throws {
    let (group, heard) = (group, Heard<Bool>())
    let model = onMain {
      let model = NoteModel(group: group)
      model.listen(on: DispatchQueue(label: "busy"))
      model.didHear = {
        dispatchPrecondition(condition: .onQueue(.main))
        heard.add(true)
      }
      return model
    }
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.passMessageObject("Sunrise" as NSString, identifier: "title")
    try heard.wait("the title") { $0.count == 1 }
    wormhole.passMessageObject(1 as NSNumber, identifier: "other")
    try heard.wait("the other") { $0.count == 2 }
    #expect(onMain { model.titles } == ["Sunrise", "other"])
  }

  func transportsAreSubclassedAndReplaced() throws {
    let transit = CountingTransit()
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "w")
    wormhole.wormholeMessenger = transit
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    #expect(wormhole.message(withIdentifier: "m") as? String == "a")
    #expect(transit.writes == 1)
    let logging = LoggingTransit(applicationGroupIdentifier: group, optionalDirectory: "w")
    wormhole.wormholeMessenger = logging
    wormhole.passMessageObject("b" as NSString, identifier: "m")
    #expect(wormhole.message(withIdentifier: "m") as? String == "b")
    #expect(logging.reads == 1)
    #expect(logging.messagePassingDirectoryPath()?.hasSuffix("/w") == true)
    #expect(logging.fileManager !== FileManager.default)
    let context = ContextTransit(applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.wormholeMessenger = context
    wormhole.passMessageObject("c" as NSString, identifier: "m")
    #expect(context.writes == 1)
    let session = WatchWormhole(applicationGroupIdentifier: nil, transitingType: .sessionContext)
    session.session(.default, didReceiveMessage: [:])
    #expect(session.heard == 1)
  }

  func aSubclassSeesTheListenersOfItsWormhole() throws {
    let heard = Heard<String>()
    let counting = CountingWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    counting.listenerQueue = DispatchQueue(label: "listener")
    let wormhole: MMWormhole = counting
    wormhole.listenForMessage(withIdentifier: "m") { heard.add($0 as? String ?? "") }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("the message") { $0 == ["a"] }
    #expect(counting.listeners == 1 && counting.heard == 1)
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  func aPresenterIsReleasedAndANamedFunctionIsCalled() throws {
    let folder = try TemporaryDirectory()
    let url = URL(fileURLWithPath: folder.path + "/note")
    let heard = Heard<Bool>()
    var presenter: NotePresenter? = NotePresenter(url)
    presenter?.save("text") { heard.add($0 == nil) }
    try heard.wait("the save") { $0 == [true] }
    presenter?.presentedItemOperationQueue.waitUntilAllOperationsAreFinished()
    presenter = nil
    try eventually("it is released") {
      NSFileCoordinator.filePresenters.allSatisfy { $0.presentedItemURL != url }
    }
    // Only the main queue uses it, when it is started.
    nonisolated(unsafe) let observer = NoteObserver()
    observer.start("\(group).changed")
    let observation = try DarwinNotification("\(group).changed").observe { heard.add(true) }
    try DarwinNotification("\(group).changed").post()
    try eventually("it is called") {
      // The function is called on the main queue.
      DispatchQueue.main.sync { observer.count > 0 }
    }
    observer.stop()
    observation.cancel()
  }

  func sizesAreSettings() {
    let settings = SizeSettings(group: group)
    settings.width = 1.5
    settings.sizes = ["height": 2.5]
    #expect(SizeSettings(group: group).width == 1.5)
    #expect(SizeSettings(group: group).sizes == ["height": 2.5])
    settings.defaults.setValue(nil, forKey: "width")
    #expect(settings.width == 0)
  }
}
