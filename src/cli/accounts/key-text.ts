/** Keys as text for a reader. */
import type { keyShape } from '../../../pipelines/management/shapes.ts'

/** Replaces null by its meaning. */
export const keyInWords = <Shape extends ReturnType<typeof keyShape>>(json: Shape) => ({
  ...json,
  allowed_models: json.allowed_models ?? 'all',
  expires_at: json.expires_at ?? 'never',
})
