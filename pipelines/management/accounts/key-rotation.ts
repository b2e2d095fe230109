/** Operations of the secrets of one key. */
import { endFormerSecret, rotateKey } from '../../../schemas/management/accounts/key-rotation.ts'
import { implement } from '../operation.ts'
import { keyShape } from '../shapes.ts'
import { assertHolds, findKeyAccount, withSecret } from './keys.ts'

export const keyRotationOperations = [
  implement(rotateKey, findKeyAccount, async (context, { id, grace_seconds }) => {
    await assertHolds(context, id)
    return withSecret(await context.write((database) => database.keys.rotate(id, grace_seconds)))
  }),
  implement(endFormerSecret, findKeyAccount, async ({ write }, { id }) =>
    keyShape(await write((database) => database.keys.endFormerSecret(id))),
  ),
]
