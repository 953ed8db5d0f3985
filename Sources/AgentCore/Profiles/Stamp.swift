/// When something happened, such that its age can be told in another boot as well.
package struct Stamp: Hashable, Sendable {
    package let moment: Moment
    package let boot: BootID

    package init(_ moment: Moment, boot: BootID) {
        self.moment = moment
        self.boot = boot
    }

    /// How long ago it happened; never negative.
    ///
    /// Within one boot the boot clock tells. Across boots the wall clock does, and it may have been
    /// wrong at either end: a stamp from the future must not stay young for ever, so the least age that
    /// the boot clock knows of counts then. Against a wall clock that may be right it is nothing, for
    /// the boot clock may be another machine's: a container's is its host's.
    package func age(at now: Moment, boot present: BootID) -> TimeSpan {
        if boot == present {
            return max(.zero, now.boot - moment.boot)
        }
        let told = now.wall - moment.wall
        return told < .zero ? leastAge(at: now) : told
    }

    /// The least that its age can be in another boot; never negative.
    ///
    /// A boot clock that stands before the stamp's began with the present boot, all of which came after
    /// the stamp. One that stands after it may never have stopped: a container has boot ids of its own
    /// and its host's clock. By what it has gone on, the stamp is older in either case. Where both
    /// clocks tell something, as in a container that was moved to another host, the lesser counts.
    func leastAge(at now: Moment) -> TimeSpan {
        let gone = now.boot - moment.boot
        let least = gone < .zero ? TimeSpan(nanoseconds: now.boot.nanoseconds) : gone
        let told = now.wall - moment.wall
        return max(.zero, told < .zero ? least : min(least, told))
    }
}

/// A time before which a refresh token may not be presented, across restarts and reboots.
package struct NotBefore: Hashable, Sendable {
    /// When the waiting began.
    package let since: Stamp

    /// How long it lasts, counted from `since`.
    package let span: TimeSpan

    package init(since: Stamp, span: TimeSpan) {
        self.since = since
        self.span = span
    }

    /// What is left of the waiting; zero when it is over.
    ///
    /// A hold keeps the whole person signed in, and a wall clock may have been set forward within a
    /// reboot: what may be a hold counts by the least that has passed for sure, which costs two minutes
    /// at the most. What a server asked for is longer, and there the wall clock is good enough.
    package func remaining(at now: Moment, boot: BootID) -> TimeSpan {
        guard boot == since.boot || span > RotationTiming.longestHold else {
            return max(.zero, span - since.leastAge(at: now))
        }
        return remainingOfWait(at: now, boot: boot)
    }

    /// The same for a token that may have been presented before.
    ///
    /// A hold is on those that never were, and a keyring that lost the last write brings back one
    /// that was over: the repetition must not miss the server's grace for it.
    package func remainingOfWait(at now: Moment, boot: BootID) -> TimeSpan {
        max(.zero, span - since.age(at: now, boot: boot))
    }
}
