/** Writes a call's request for an upstream. A translation reads the whole body, which takes time for a long one. */
import type { Route } from '../../../src/core/routing/catalog.ts'
import { type BodyDeps, workOnBody } from '../../../src/protocols/body-work.ts'
import type { EncodedRequest, EncodeOptions, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import type { AdmittedCall } from '../../stages/billing/precharge.ts'

const pairOf = ({ call }: AdmittedCall, { from: client, to: upstream }: ProtocolAdapter) => ({
  client,
  upstream,
  call,
})

/** Returns the links to fetch before the request is written. @throws Failure, as the Promise does */
export function linksToFetch(
  deps: BodyDeps,
  admitted: AdmittedCall,
  { channel: { provider }, isTranslated }: Route,
  adapter: ProtocolAdapter,
): readonly string[] | Promise<readonly string[]> {
  const { call, known, request } = admitted
  if (!isTranslated) return adapter.urlsToFetch(call, provider)
  const input = { ...pairOf(admitted, adapter), provider }
  return workOnBody(deps, known.account.id, 'urls', input, request.body)
}

/** Returns the request. Where both speak one protocol, only places in the body change. @throws Failure, as the Promise does */
export function writtenRequest(
  deps: BodyDeps,
  admitted: AdmittedCall,
  { isTranslated }: Route,
  adapter: ProtocolAdapter,
  options: EncodeOptions,
): EncodedRequest | Promise<EncodedRequest> {
  const { call, known, request } = admitted
  if (!isTranslated) return adapter.encodeRequest(call, options)
  const input = { ...pairOf(admitted, adapter), options }
  return workOnBody(deps, known.account.id, 'encode', input, request.body)
}
