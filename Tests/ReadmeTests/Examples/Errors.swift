import Wormhole

/// What a program tells its user, and whether another attempt may succeed.
func advice(on error: WormholeError) -> (sentence: String, tryAgain: Bool) {
  switch error.code {
  case .full, .exhausted, .conflict, .superseded, .timedOut:
    (error.description, true)
  default:
    (error.description, false)
  }
}
