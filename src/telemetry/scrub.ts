/**
 * Removes secrets from a log line as its last step. It works on the finished text, so that no field, message or stack
 * can carry a secret past it.
 */
import { KEY_SHOWN_CHARS } from '../../schemas/accounts/key.ts'

const REDACTED = '[secret]'

/** A shorter one would blank ordinary words. */
const MIN_SECRET_CHARS = 6

/** Endings of the names of fields with a secret, in any of the usual spellings. */
const NAMES =
  'authorization|cookie|passw(?:or)?d|secret|token|(?:api|master)[-_]?key|access[-_]?key(?:[-_]?id)?'

/**
 * Each pattern keeps its first group, which shows the kind of the removed text. None reads the same characters twice.
 */
const PATTERNS: readonly RegExp[] = [
  // Credentials in a URL. A password may itself hold an @.
  /(:\/\/)[^\s"'\\/?#]{1,512}(?=@)/g,
  /((?:bearer|basic|digest)\s+)[\w.~+/=:-]{12,}/gi,
  // A field or header by its name, in an object or a list of pairs, also in JSON within JSON.
  new RegExp(`((?:${NAMES})\\\\{0,4}["']?\\s{0,4}[:=,]\\s{0,4}\\\\{0,4}["'])[^"'\\\\]+`, 'gi'),
  // The same as plain text: a header line, a connection string of words.
  /((?:api[-_]?key|authorization|password|secret)\s{0,4}[:=]\s{0,4})[^\s"',;\\[]+/gi,
  /([?&](?:key|api_key|access_token|token|sig|signature|x-amz-signature|x-amz-security-token)=)[^&\s"'\\]+/gi,
  // Keys as vendors print them. Of our own, as much stays as may be shown.
  new RegExp(`\\b(sk-tollgate-[0-9a-f]{${KEY_SHOWN_CHARS - 'sk-tollgate-'.length}})[0-9a-f]+`, 'g'),
  /\b((?:sk|pk|rk)-)(?!tollgate-[0-9a-f]{8}\b)[\w-]{6,}/g,
  /\b(AKIA|ASIA|AIza|ya29\.|gsk_|xai-|ghp_|eyJ)[\w.-]{12,}/g,
]

/** Of the secrets that live shortly. */
const MAX_RECENT = 64

export class Scrubber {
  #known: readonly string[] = []
  /** The newest first. */
  #recent: readonly string[] = []

  /** Secrets known by their value, such as the channels' keys. Adds to those known already. */
  hide(secrets: Iterable<string>): void {
    const all = new Set(this.#known)
    for (const secret of secrets) {
      if (secret.length < MIN_SECRET_CHARS) continue
      all.add(secret)
      // The form within a JSON text.
      all.add(JSON.stringify(secret).slice(1, -1))
    }
    // The longest first: one may be a part of another.
    this.#known = [...all].sort((a, b) => b.length - a.length)
  }

  /** A secret that lives shortly, such as an access token: the last ones are hidden. */
  hideRecent(secret: string): void {
    if (secret.length >= MIN_SECRET_CHARS) this.#recent = [secret, ...this.#recent].slice(0, MAX_RECENT)
  }

  scrub(line: string): string {
    let clean = line
    for (const secret of this.#recent) clean = clean.replaceAll(secret, REDACTED)
    for (const secret of this.#known) {
      if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED)
    }
    for (const pattern of PATTERNS) clean = clean.replace(pattern, `$1${REDACTED}`)
    return clean
  }
}
