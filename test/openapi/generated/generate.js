/** Writes the types of the description at the given URL; a file is a Blob. */
import { writeFileSync } from 'node:fs'
import openapiTypescript, { astToString } from 'openapi-typescript'
import ts from 'typescript'

const BLOB = ts.factory.createTypeReferenceNode('Blob')
const types = await openapiTypescript(new URL(process.argv[2]), {
  // A field with a default may be left out of a request.
  defaultNonNullable: false,
  transform: (schema) => (schema.format === 'binary' ? BLOB : undefined),
})
writeFileSync(new URL('schema.ts', import.meta.url), astToString(types))
