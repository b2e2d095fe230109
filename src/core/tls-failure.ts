/** Describes what is wrong with the certificate of an engine, and the remedy. */

const UNTRUSTED =
  /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT|self-signed certificate|unable to (?:verify the first|get (?:local )?issuer) certificate/
const EXPIRED = /CERT_HAS_EXPIRED|certificate has expired/
const EARLY = /CERT_NOT_YET_VALID|certificate is not yet valid/
const OTHER_NAME = /ERR_TLS_CERT_ALTNAME_INVALID|does not match certificate's altnames/

/** Returns the engine's fault and the remedy; null where the error is not about a certificate. */
export function describeTlsFailure(engine: string, error: unknown): string | null {
  const text = toText(error)
  if (EXPIRED.test(text))
    return `The certificate of ${engine} has expired: renew it there, or correct the clock here.`
  if (EARLY.test(text))
    return `The certificate of ${engine} is not valid yet: correct the clock here or there.`
  if (OTHER_NAME.test(text))
    return `The certificate of ${engine} is for another name: in the URL write the host as the certificate names it.`
  if (UNTRUSTED.test(text))
    return `The certificate of ${engine} is not of a trusted authority: set NODE_EXTRA_CA_CERTS to a file in PEM with the certificate of its authority.`
  return null
}

/** Returns code and message of an error, and of those that caused it. */
function toText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code = '', message, cause } = error as Error & { code?: string }
  return `${code} ${message} ${cause === undefined ? '' : toText(cause)}`
}
