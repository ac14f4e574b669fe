import Foundation
import WatchConnectivity

/// The films that the user has bought, on either side, kept up to date by the link.
final class TicketOffice: NSObject {
  static let shared = TicketOffice()

  private(set) var purchased: [Int] = []
  private var cancellable: AnyCancellable?

  override private init() {
    super.init()
    cancellable = Connectivity.shared.$purchasedIds
      .dropFirst()
      .sink { [weak self] ids in
        self?.purchased = ids
        print("purchased \(ids)")
      }
  }

  func purchase(_ id: Int, by delivery: Delivery) {
    guard !purchased.contains(id) else { return }
    purchased.append(id)
    update(by: delivery)
  }

  func refund(_ id: Int, by delivery: Delivery) {
    purchased.removeAll { $0 == id }
    update(by: delivery)
  }

  private func update(by delivery: Delivery) {
    Connectivity.shared.send(
      ids: purchased, delivery: delivery,
      replyHandler: { reply in
        print(reply["verified"] as? Bool == true ? "verified" : "delivered")
      },
      errorHandler: { error in
        let code = (error as? WCError)?.code ?? .genericError
        print("failed \(code.rawValue)")
      })
  }
}
