// The Python sources that libdshang.so carries: the files of probe/dshang_probe/ and bootstrap.py.
#pragma once

namespace dshang::rank {

struct EmbeddedFile {
  const char* name;            // without ".py"; null ends the table
  const unsigned char* bytes;  // UTF-8, a zero byte follows
  unsigned length;
};

extern const EmbeddedFile embedded_files[];

}  // namespace dshang::rank
