/** Routes below `/v1/images`. */
import type { CancelDeps } from '../../../pipelines/media/cancel-task.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  cancelImages,
  editImages,
  listImages,
  type MakeImagesDeps,
  makeImages,
  type ReadImagesDeps,
  showImages,
} from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
import type { RoutedPath } from './routed.ts'

export type ImageRouteDeps = MakeImagesDeps & ReadImagesDeps & CancelDeps & DeleteFilesDeps

export function imageRoutes(deps: ImageRouteDeps): readonly RoutedPath[] {
  return [
    {
      path: '/v1/images/generations',
      methods: { POST: { handler: makeImages(deps) }, GET: { handler: listImages(deps) } },
    },
    {
      path: '/v1/images/generations/{id}',
      methods: { GET: { handler: showImages(deps) }, DELETE: { handler: cancelImages(deps) } },
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
