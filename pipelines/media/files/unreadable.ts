/** The client's error if the object store does not answer or breaks off. */
import { Failure } from '../../../schemas/failure.ts'

/** @throws Failure `service_unavailable` */
export function throwUnreadable(error: Error): never {
  throw new Failure('service_unavailable', 'Files cannot be read at the moment. Try again in a minute.', {
    internal: `object store: ${error.message}`,
  })
}
