/** The parts of an OpenAPI document that ours has. */

export type JsonSchema = { readonly [name: string]: unknown }

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

export interface Content {
  readonly [contentType: string]: { readonly schema: JsonSchema; readonly example?: object }
}

export interface Answer {
  readonly description: string
  readonly headers: JsonSchema
  readonly content?: Content
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly JsonSchema[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: { readonly [status: string]: Answer }
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: {
    readonly schemas: { readonly [name: string]: JsonSchema }
    readonly headers: JsonSchema
    readonly securitySchemes: { readonly [name: string]: JsonSchema }
  }
}
