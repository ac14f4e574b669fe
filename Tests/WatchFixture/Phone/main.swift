import Foundation
import WatchConnectivity

// The app: follows the commands in its arguments, and runs until it is killed.
setvbuf(stdout, nil, _IOLBF, 0)

let images = ImageCase()
Connectivity.shared.images = images
_ = TicketOffice.shared

func take(_ step: String) {
  let words = step.split(separator: "=").map(String.init)
  let id = words.count > 1 ? Int(words[1]) ?? 0 : 0
  switch words[0] {
  case "now": TicketOffice.shared.purchase(id, by: .failable)
  case "later": TicketOffice.shared.purchase(id, by: .guaranteed)
  case "latest": TicketOffice.shared.purchase(id, by: .highPriority)
  case "refund": TicketOffice.shared.refund(id, by: .guaranteed)
  case "images":
    Connectivity.shared.send(
      ids: TicketOffice.shared.purchased, delivery: .highPriority, wantedImages: [1, 2, 3])
  default: print("what is \(step)?")
  }
}

Connectivity.shared.whenActive {
  print("active")
  CommandLine.arguments.dropFirst().forEach(take)
}
RunLoop.main.run()
