/** Routes below `/v1/images`. */
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  editImages,
  type ImageTaskDeps,
  imageTasks,
  type MakeImagesDeps,
  makeImages,
} from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
import type { RoutedPath } from './routed.ts'

export type ImageRouteDeps = MakeImagesDeps & ImageTaskDeps & DeleteFilesDeps

export function imageRoutes(deps: ImageRouteDeps): readonly RoutedPath[] {
  const images = imageTasks(deps)
  return [
    {
      path: '/v1/images/generations',
      methods: { POST: { handler: makeImages(deps) }, GET: { handler: images.list } },
    },
    {
      path: '/v1/images/generations/{id}',
      methods: { GET: { handler: images.show }, DELETE: { handler: images.cancel } },
    },
    {
      path: '/v1/images/generations/{id}/files',
      methods: { DELETE: { handler: deleteFiles(deps, 'image') } },
    },
    {
      path: '/v1/images/edits',
      methods: { POST: { handler: editImages(deps), maxFormBytes: MAX_FORM_BYTES } },
    },
  ]
}
