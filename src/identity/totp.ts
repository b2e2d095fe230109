/** One-time codes by time (RFC 6238): 6 digits, 30 seconds, SHA-1, as every authenticator app takes them. */
import { Secret, TOTP } from 'otpauth'

const ISSUER = 'Tollgate'
const SECRET_BYTES = 20
const PERIOD_SECONDS = 30
const MS_PER_SECOND = 1000
/** A clock that is one period ahead or behind passes. */
const WINDOW = 1
const CODE_PATTERN = /^\d{6}$/

export interface TotpEnrolment {
  /** In base 32, for typing. */
  readonly secret: string
  /** `otpauth://totp/...`, for a QR code. */
  readonly uri: string
}

/** Returns a new secret for the user with this email. */
export function enrolTotp(email: string): TotpEnrolment {
  const secret = new Secret({ size: SECRET_BYTES })
  const totp = new TOTP({ issuer: ISSUER, label: email, secret, period: PERIOD_SECONDS })
  return { secret: secret.base32, uri: totp.toString() }
}

/**
 * Returns the number of the period that a code is of; null for a wrong one. The caller refuses a period that is not
 * after the last accepted one, so that no code is accepted twice.
 * @param now epoch milliseconds
 */
export function findTotpPeriod(secret: string, code: string, now: number): number | null {
  const token = code.replaceAll(' ', '')
  if (!CODE_PATTERN.test(token)) return null
  const delta = TOTP.validate({
    token,
    secret: Secret.fromBase32(secret),
    period: PERIOD_SECONDS,
    window: WINDOW,
    timestamp: now,
  })
  return delta === null ? null : Math.floor(now / MS_PER_SECOND / PERIOD_SECONDS) + delta
}
