#if FAULT_POINTS
  internal import WormholeCLinux
#endif

/// Random numbers of the kernel, or of a schedule's seed.
package enum SystemRandom {
  package static func number() -> UInt64 {
    #if FAULT_POINTS
      if turnstile_plays() != 0 { return turnstile_random() }
    #endif
    return .random(in: .min ... .max)
  }
}

/// The numbers of ``SystemRandom``, for functions of the standard library.
package struct SystemGenerator: RandomNumberGenerator {
  package init() {}
  package mutating func next() -> UInt64 { SystemRandom.number() }
}
