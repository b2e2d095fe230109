/** Operations of the secrets of one key. */
import { endFormerSecret, rotateKey } from '../../../schemas/management/accounts/key-rotation.ts'
import { implement } from '../operation.ts'
import { keyShape } from '../shapes.ts'
import { accountOfKey, withSecret } from './keys.ts'

export const keyRotationOperations = [
  implement(rotateKey, accountOfKey, async ({ write }, { id, grace_seconds }) =>
    withSecret(await write((database) => database.keys.rotate(id, grace_seconds))),
  ),
  implement(endFormerSecret, accountOfKey, async ({ write }, { id }) =>
    keyShape(await write((database) => database.keys.endFormerSecret(id))),
  ),
]
