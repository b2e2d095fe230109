/** Reads the model name of the generate-content protocol, which is below a collection. */

/** Collections of an upstream other than `models` keep their name. */
const NAMED_COLLECTION = /^(models|tunedModels)\//
const OWN_COLLECTION = 'models/'

export const resourceName = (model: string): string =>
  NAMED_COLLECTION.test(model) ? model : OWN_COLLECTION + model

/** Returns the name without `models/`, an optional prefix. */
export const withoutCollection = (name: string): string =>
  name.startsWith(OWN_COLLECTION) ? name.slice(OWN_COLLECTION.length) : name
