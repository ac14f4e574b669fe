extension Publisher {
  /// Delivers values and the completion on a queue or a run loop, in their order.
  ///
  /// An event that waits in the queue when the subscription is cancelled is not delivered.
  public func receive<Context: Scheduler>(
    on scheduler: Context, options: SchedulerOptions? = nil
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      subscribe(
        observer.step(
          completion: { completion in
            observer.enqueue(.completion(completion))
            scheduler.schedule { observer.deliver(atMost: 1) }
          },
          { value in
            observer.enqueue(.value(value))
            scheduler.schedule { observer.deliver(atMost: 1) }
          }))
    }
  }

  /// Delivers a value when no other has followed it for a length of time.
  ///
  /// As with Combine, a completion drops the value that waits.
  public func debounce<Context: Scheduler>(
    for dueTime: SchedulerInterval, scheduler: Context, options: SchedulerOptions? = nil
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      let latest = Guarded((number: 0, value: Output?.none))
      subscribe(
        observer.step(
          completion: { completion in
            latest.withLock { $0 = ($0.number + 1, nil) }
            scheduler.schedule { observer.receive(completion: completion) }
          },
          { value in
            let number = latest.withLock { latest in
              latest = (latest.number + 1, value)
              return latest.number
            }
            scheduler.schedule(after: dueTime) {
              let due = latest.withLock { latest in
                guard latest.number == number else { return Output?.none }
                defer { latest.value = nil }
                return latest.value
              }
              if let due { observer.receive(due) }
            }
          }))
    }
  }

  /// Delivers at most one value in each length of time: the first or the latest one.
  ///
  /// The first value of all is delivered at once.
  public func throttle<Context: Scheduler>(
    for interval: SchedulerInterval, scheduler: Context, latest: Bool
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      // Nil outside an interval; inside, the value that its end delivers.
      let waiting = Guarded<Output??>(nil)
      func begin(_ value: Output) {
        observer.receive(value)
        scheduler.schedule(after: interval) {
          let next = waiting.withLock { waiting -> Output? in
            guard let next = waiting ?? nil else {
              waiting = nil
              return nil
            }
            waiting = .some(nil)
            return next
          }
          if let next { begin(next) }
        }
      }
      subscribe(
        observer.step(
          completion: { completion in
            scheduler.schedule { observer.receive(completion: completion) }
          },
          { value in
            let isFirst = waiting.withLock { waiting -> Bool in
              guard let next = waiting else {
                waiting = .some(nil)
                return true
              }
              if latest || next == nil { waiting = value }
              return false
            }
            if isFirst { scheduler.schedule { begin(value) } }
          }))
    }
  }

  /// Delivers each value, and a successful completion, a length of time later.
  public func delay<Context: Scheduler>(
    for interval: SchedulerInterval, scheduler: Context
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      subscribe(
        observer.step(
          completion: { completion in
            scheduler.schedule(after: interval) { observer.receive(completion: completion) }
          },
          { value in scheduler.schedule(after: interval) { observer.receive(value) } }))
    }
  }
}
